package httpconn

import (
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/connector"
)

// maxShown bounds what a receipt keeps of an answer's body, maxShownHeader what it
// keeps of one header, in bytes.
const (
	maxShown       = 4 << 10
	maxShownHeader = 512
)

// shownHeaders are those of an answer that a receipt keeps.
var shownHeaders = []string{
	"Content-Type", "Date", "Etag", "Last-Modified", "Location", "Retry-After",
	"X-Request-Id", "X-Correlation-Id", "Idempotency-Replayed", "Idempotent-Replayed",
}

// metadata describes an answer for the receipt. doc is the answer's JSON, of
// which one spelling is known.
func metadata(a *answer, doc document) gatehouse.JSON {
	members := []gatehouse.Member{{Name: "status", Value: gatehouse.JSON(strconv.Itoa(a.status))}}
	var hs []gatehouse.Member
	for _, name := range shownHeaders {
		if v := a.header.Get(name); v != "" {
			if len(v) > maxShownHeader {
				v = v[:maxShownHeader]
			}
			hs = append(hs, gatehouse.Member{Name: name, Value: gatehouse.StringJSON(v)})
		}
	}
	members = append(members, gatehouse.Member{Name: "headers", Value: gatehouse.ObjectJSON(hs...)})
	body := string(a.body)
	if doc.json != "" {
		body = string(doc.json)
	}
	cut := a.cut
	if len(body) > maxShown {
		end := maxShown
		for end > 0 && !utf8.RuneStart(body[end]) {
			end--
		}
		body = body[:end]
		if cut == "" {
			cut = "only the first 4 KiB are kept"
		}
	}
	if len(body) > 0 {
		value, err := gatehouse.Canonicalize([]byte(body))
		if err != nil {
			value = gatehouse.StringJSON(body)
		}
		members = append(members, gatehouse.Member{Name: "body", Value: value})
	}
	if cut != "" {
		members = append(members, gatehouse.Member{Name: "body_truncated", Value: gatehouse.StringJSON(cut)})
	}
	return gatehouse.ObjectJSON(members...)
}

// says is an answer's body as the target wrote it, cut to the length that is stored.
func says(a *answer, doc document) string {
	body := string(a.body)
	if doc.json != "" {
		body = string(doc.json)
	}
	return cutText(strings.ToValidUTF8(body, "\uFFFD"), gatehouse.MaxTargetSays)
}

// cutText shortens a text to at most so many bytes, at a character.
func cutText(s string, most int) string {
	if len(s) <= most {
		return s
	}
	const more = "…"
	end := most - len(more)
	for end > 0 && !utf8.RuneStart(s[end]) {
		end--
	}
	return s[:end] + more
}

// document is an answer's JSON, "" when it has none.
type document struct{ json gatehouse.JSON }

func parseDocument(a *answer) document {
	if a.cut != "" {
		return document{}
	}
	j, err := gatehouse.Canonicalize(a.body)
	if err != nil {
		return document{}
	}
	return document{j}
}

// at follows an RFC 6901 pointer.
func (d document) at(p Pointer) (gatehouse.JSON, bool) {
	j := d.json
	if j == "" {
		return "", false
	}
	if p == "" {
		return j, true
	}
	for _, segment := range strings.Split(string(p[1:]), "/") {
		segment = strings.NewReplacer("~1", "/", "~0", "~").Replace(segment)
		if next, ok := j.Get(segment); ok {
			j = next
			continue
		}
		elements, err := j.Elements()
		i, errIndex := strconv.Atoi(segment)
		if err != nil || errIndex != nil || i < 0 || i >= len(elements) || strconv.Itoa(i) != segment {
			return "", false
		}
		j = elements[i]
	}
	return j, true
}

// plain is a string's content, or any other value's JSON.
func plain(j gatehouse.JSON) string {
	if s, ok := j.Text(); ok {
		return s
	}
	return string(j)
}

func (m *match) matches(call connector.Call, doc document) bool {
	got, ok := doc.at(m.pointer)
	if !ok || m.equals == nil {
		return ok
	}
	want, err := m.equals.render(values{call: call})
	return err == nil && (want.Equal(got) || plain(want) == plain(got))
}

// version finds the version in an answer.
func (s *source) version(a *answer, doc document) (string, bool) {
	if s == nil {
		return "", false
	}
	if s.header != "" {
		v := a.header.Get(s.header)
		return v, v != ""
	}
	j, ok := doc.at(*s.pointer)
	return plain(j), ok
}

// sameVersion compares versions: as texts, as entity-tags with and without
// quotes, or as numbers.
func sameVersion(a, b string) bool {
	if a == b || strings.Trim(a, `"`) == strings.Trim(b, `"`) {
		return true
	}
	x, errX := gatehouse.ParseDecimal(a)
	y, errY := gatehouse.ParseDecimal(b)
	return errX == nil && errY == nil && x.Cmp(y) == 0
}

// reversal describes the change that undoes an applied one, nil for none.
func (op *operation) reversal(call connector.Call, a *answer, doc document, externalID string) *gatehouse.Reversal {
	r := op.reverse
	if r == nil {
		return nil
	}
	rev := &gatehouse.Reversal{Operation: r.operation, Target: call.Target, CurrentState: call.ProposedChange}
	rev.Target.Version = ""
	v := values{call: call, extra: map[string]gatehouse.JSON{}}
	if externalID != "" {
		v.extra["external_id"] = gatehouse.StringJSON(externalID)
	}
	if r.ref != nil {
		ref, err := r.ref.render(v, verbatim)
		if err != nil || ref == "" {
			return nil
		}
		rev.Target.EntityRef, rev.Target.EntityRefs = ref, nil
	}
	if r.version != nil {
		version, ok := r.version.version(a, doc)
		if !ok {
			return nil
		}
		rev.Target.Version = version
	}
	var ok bool
	if rev.ProposedChange, ok = r.undo(call, v); !ok {
		return nil
	}
	return rev
}

func (r *reverse) undo(call connector.Call, v values) (gatehouse.JSON, bool) {
	if r.change != nil {
		j, err := r.change.render(v)
		return j, err == nil
	}
	fields, err := call.ProposedChange.Fields()
	if err != nil || len(fields) == 0 {
		return "", false
	}
	for i, f := range fields {
		old, ok := call.CurrentState.Get(f.Name)
		if !ok {
			return "", false
		}
		fields[i].Value = old
	}
	return gatehouse.ObjectJSON(fields...), true
}
