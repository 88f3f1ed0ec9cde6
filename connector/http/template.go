package httpconn

import (
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/connector"
)

var placeholder = regexp.MustCompile(`\{([a-z_]+(?:\.[^{}"\\]{1,128})?)\}`)

// part is a literal, or the name of a value.
type part struct {
	literal string
	name    string
}

// template is a text with placeholders for values.
type template []part

// parseTemplate parses a template. composite permits the names of objects and arrays; extra are
// further permitted names.
func parseTemplate(s string, composite bool, extra ...string) (template, error) {
	var t template
	at := 0
	for _, m := range placeholder.FindAllStringSubmatchIndex(s, -1) {
		name := s[m[2]:m[3]]
		if err := knownName(name, composite, extra); err != nil {
			return nil, err
		}
		if m[0] > at {
			t = append(t, part{literal: s[at:m[0]]})
		}
		t = append(t, part{name: name})
		at = m[1]
	}
	if at < len(s) {
		t = append(t, part{literal: s[at:]})
	}
	for _, p := range t {
		if strings.ContainsAny(p.literal, "{}") {
			return nil, fmt.Errorf("a brace in %s is not part of a {name}", gatehouse.Quote(s))
		}
	}
	return t, nil
}

func knownName(name string, composite bool, extra []string) error {
	switch name {
	case "tenant", "action_id", "operation", "digest", "idempotency_key", "entity_type", "entity_ref", "version":
		return nil
	case "entity_refs", "proposed_change", "current_state":
		if composite {
			return nil
		}
		return fmt.Errorf("{%s} is allowed only in a body", name)
	}
	if head, _, dotted := strings.Cut(name, "."); dotted && (head == "proposed_change" || head == "current_state") {
		return nil
	}
	for _, e := range extra {
		if name == e {
			return nil
		}
	}
	return fmt.Errorf("{%s} is not known", name)
}

// values are the values for a template's names.
type values struct {
	call  connector.Call
	extra map[string]gatehouse.JSON
}

// valueError is an error in one value of a call: the value is absent, or the request cannot use it.
type valueError struct{ pointer, detail string }

func (m *valueError) Error() string { return m.pointer + " " + m.detail }

// get returns a value as JSON.
func (v values) get(name string) (gatehouse.JSON, error) {
	if j, ok := v.extra[name]; ok {
		return j, nil
	}
	need := func(s, pointer string) (gatehouse.JSON, error) {
		if s == "" {
			return "", &valueError{pointer, "is needed by this operation"}
		}
		return gatehouse.StringJSON(s), nil
	}
	c := v.call
	switch name {
	case "tenant":
		return gatehouse.StringJSON(c.Tenant), nil
	case "action_id":
		return gatehouse.StringJSON(c.ActionID), nil
	case "operation":
		return gatehouse.StringJSON(c.Operation), nil
	case "digest":
		return gatehouse.StringJSON(string(c.Digest)), nil
	case "idempotency_key":
		return gatehouse.StringJSON(c.TargetKey()), nil
	case "entity_type":
		return need(c.Target.EntityType, "/target/entity_type")
	case "entity_ref":
		return need(c.Target.EntityRef, "/target/entity_ref")
	case "version":
		return need(c.Target.Version, "/target/version")
	case "entity_refs":
		if len(c.Target.EntityRefs) == 0 {
			return "", &valueError{"/target/entity_refs", "is needed by this operation"}
		}
		refs := make([]gatehouse.JSON, len(c.Target.EntityRefs))
		for i, ref := range c.Target.EntityRefs {
			refs[i] = gatehouse.StringJSON(ref)
		}
		return gatehouse.ArrayJSON(refs...), nil
	case "proposed_change":
		return c.ProposedChange, nil
	case "current_state":
		if c.CurrentState == "" {
			return "", &valueError{"/current_state", "is needed by this operation"}
		}
		return c.CurrentState, nil
	}
	head, member, dotted := strings.Cut(name, ".")
	if !dotted {
		return "", &valueError{"/" + name, "has no value"}
	}
	object := c.ProposedChange
	if head == "current_state" {
		object = c.CurrentState
	}
	j, ok := object.Get(member)
	if !ok {
		return "", &valueError{gatehouse.JoinPointer(head, member), "is needed by this operation"}
	}
	return j, nil
}

// text returns a value as text: the content of a string, or the JSON of a number or boolean. Other
// values are an error.
func (v values) text(name string) (string, error) {
	j, err := v.get(name)
	if err != nil {
		return "", err
	}
	if s, ok := j.Text(); ok {
		return s, nil
	}
	if j == "null" || strings.HasPrefix(string(j), "{") || strings.HasPrefix(string(j), "[") {
		return "", &valueError{pointerOf(name), "must be a string, number or boolean for this operation"}
	}
	return string(j), nil
}

// pointerOf is the JSON pointer of a value in the proposal.
func pointerOf(name string) string {
	switch name {
	case "entity_type", "entity_ref", "entity_refs", "version":
		return "/target/" + name
	}
	head, member, dotted := strings.Cut(name, ".")
	if !dotted {
		return "/" + head
	}
	return gatehouse.JoinPointer(head, member)
}

// render fills in the values, each escaped by escape.
func (t template) render(v values, escape func(name, value string) (string, error)) (string, error) {
	var b strings.Builder
	for _, p := range t {
		if p.name == "" {
			b.WriteString(p.literal)
			continue
		}
		s, err := v.text(p.name)
		if err == nil {
			s, err = escape(p.name, s)
		}
		if err != nil {
			return "", err
		}
		b.WriteString(s)
	}
	return b.String(), nil
}

func verbatim(_, value string) (string, error) { return value, nil }

// asHeader accepts printable ASCII without leading or trailing spaces.
func asHeader(name, value string) (string, error) {
	for i := range len(value) {
		if value[i] < 0x20 || value[i] > 0x7e {
			return "", &valueError{pointerOf(name), "goes into a header and must be printable ASCII"}
		}
	}
	if value == "" || strings.TrimSpace(value) != value {
		return "", &valueError{pointerOf(name), "goes into a header and cannot be empty or begin or end with a space"}
	}
	return value, nil
}

// pathTemplate is a path, segment by segment, and a query.
type pathTemplate struct {
	segments      []template
	query         template
	encodeSlashes bool
}

func parsePath(s string, encodeSlashes bool) (*pathTemplate, error) {
	if !strings.HasPrefix(s, "/") {
		return nil, fmt.Errorf("must begin with a slash")
	}
	path, query, _ := strings.Cut(s, "?")
	if strings.ContainsAny(s, "#\\") {
		return nil, fmt.Errorf("cannot have a fragment or a backslash")
	}
	p := &pathTemplate{encodeSlashes: encodeSlashes}
	for _, segment := range strings.Split(path[1:], "/") {
		if plain, err := url.PathUnescape(placeholder.ReplaceAllString(segment, "x")); err != nil || hasDotSegment(plain) {
			return nil, fmt.Errorf("has a segment %s", gatehouse.Quote(segment))
		}
		t, err := parseTemplate(segment, false)
		if err != nil {
			return nil, err
		}
		p.segments = append(p.segments, t)
	}
	var err error
	p.query, err = parseTemplate(query, false)
	return p, err
}

// render returns the escaped path and query.
func (p *pathTemplate) render(v values) (path, query string, err error) {
	var b strings.Builder
	for _, t := range p.segments {
		segment, err := t.render(v, p.asSegment)
		if err != nil {
			return "", "", err
		}
		// Values and literals could together form a dot segment.
		if plain, err := url.PathUnescape(segment); err != nil || hasDotSegment(plain) {
			i := slices.IndexFunc(t, func(p part) bool { return p.name != "" }) // literals are checked by parsePath
			return "", "", &valueError{pointerOf(t[i].name), "makes a path with a dot segment"}
		}
		b.WriteString("/" + segment)
	}
	query, err = p.query.render(v, func(_, value string) (string, error) { return url.QueryEscape(value), nil })
	return b.String(), query, err
}

func (p *pathTemplate) asSegment(name, value string) (string, error) {
	for i := range len(value) {
		if value[i] < 0x20 || value[i] == 0x7f {
			return "", &valueError{pointerOf(name), "goes into a path and cannot have control characters"}
		}
	}
	switch {
	case value == "":
		return "", &valueError{pointerOf(name), "goes into a path and cannot be empty"}
	case !p.encodeSlashes && strings.ContainsAny(value, `/\`):
		return "", &valueError{pointerOf(name), "goes into a path and cannot have slashes"}
	}
	if hasDotSegment(value) {
		return "", &valueError{pointerOf(name), "goes into a path and cannot have dot segments"}
	}
	return url.PathEscape(value), nil
}

// hasDotSegment reports whether an unescaped path has a segment "." or "..".
func hasDotSegment(path string) bool {
	for segment := range strings.FieldsFuncSeq(path, func(r rune) bool { return r == '/' || r == '\\' }) {
		if segment == "." || segment == ".." {
			return true
		}
	}
	return false
}

// bodyTemplate is a JSON value whose strings are templates. A string that consists of one name only
// is replaced by the value itself, of whatever type.
type bodyTemplate struct {
	literal  gatehouse.JSON // for kind 0
	text     template
	members  []bodyMember
	elements []*bodyTemplate
	kind     byte // 0 literal, '"', '{', '['
}

type bodyMember struct {
	name  string
	value *bodyTemplate
}

func parseBody(s string, extra ...string) (*bodyTemplate, error) {
	j, err := gatehouse.Canonicalize([]byte(s))
	if err != nil {
		return nil, err
	}
	return newBody(j, extra)
}

func newBody(j gatehouse.JSON, extra []string) (*bodyTemplate, error) {
	if s, ok := j.Text(); ok {
		t, err := parseTemplate(s, true, extra...)
		if err != nil {
			return nil, err
		}
		return &bodyTemplate{kind: '"', text: t}, nil
	}
	if fields, err := j.Fields(); err == nil {
		b := &bodyTemplate{kind: '{'}
		for _, f := range fields {
			if strings.ContainsAny(f.Name, "{}") {
				return nil, fmt.Errorf("the name %s cannot have placeholders", gatehouse.Quote(f.Name))
			}
			value, err := newBody(f.Value, extra)
			if err != nil {
				return nil, err
			}
			b.members = append(b.members, bodyMember{f.Name, value})
		}
		return b, nil
	}
	if elements, err := j.Elements(); err == nil {
		b := &bodyTemplate{kind: '['}
		for _, e := range elements {
			value, err := newBody(e, extra)
			if err != nil {
				return nil, err
			}
			b.elements = append(b.elements, value)
		}
		return b, nil
	}
	return &bodyTemplate{literal: j}, nil
}

func (b *bodyTemplate) render(v values) (gatehouse.JSON, error) {
	switch b.kind {
	case '"':
		if len(b.text) == 1 && b.text[0].name != "" {
			return v.get(b.text[0].name)
		}
		s, err := b.text.render(v, verbatim)
		return gatehouse.StringJSON(s), err
	case '{':
		members := make([]gatehouse.Member, len(b.members))
		for i, m := range b.members {
			j, err := m.value.render(v)
			if err != nil {
				return "", err
			}
			members[i] = gatehouse.Member{Name: m.name, Value: j}
		}
		return gatehouse.ObjectJSON(members...), nil
	case '[':
		elements := make([]gatehouse.JSON, len(b.elements))
		for i, e := range b.elements {
			j, err := e.render(v)
			if err != nil {
				return "", err
			}
			elements[i] = j
		}
		return gatehouse.ArrayJSON(elements...), nil
	}
	return b.literal, nil
}
