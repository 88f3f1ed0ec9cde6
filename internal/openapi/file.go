package openapi

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/gatehouse-dev/gatehouse"
	httpconn "github.com/gatehouse-dev/gatehouse/connector/http"
)

// State is the state of an operation after an import.
type State string

// The states.
const (
	// Accepted: a person has accepted it, and it has not changed since.
	Accepted State = "accepted"
	// New: it has not been accepted yet.
	New State = "new"
	// Changed: it has changed since it was accepted, and must be accepted again.
	Changed State = "changed"
	// Gone: it was in the file, but is no longer in the document.
	Gone State = "gone"
	// LeftOut: it is in the document but cannot be imported, or it was in the file but matches no pattern of the
	// import.
	LeftOut State = "left_out"
)

// Line is the result of an import for one operation.
type Line struct {
	Name  string
	State State
	// Updated is true if this import has changed the operation or its state.
	Updated bool
	Class   string
	Floor   gatehouse.RiskLevel
	Request string
	// Why has the reasons for class and level. Differs lists the differences from the accepted
	// operation.
	Why, Differs []string
	Money        []string
	Currency     string
}

// entry is an operation in the file: its fields, and the data of the import.
type entry struct {
	fields   map[string]any // as written, without imported
	imported origin
}

// origin is the value of the key imported.
type origin struct {
	Digest   string   `json:"digest"`
	Why      []string `json:"why,omitempty"`
	Money    []string `json:"money,omitempty"`
	Currency string   `json:"currency,omitempty"`
	Differs  []string `json:"differs,omitempty"`
}

// File is a file of imported operations.
type File struct {
	doc             httpconn.Document
	accepted, aside map[string]entry
	leftOut         map[string]string
}

// Open parses a file; an empty text stands for a file that does not exist yet.
func Open(text []byte) (*File, error) {
	f := &File{accepted: map[string]entry{}, aside: map[string]entry{}}
	if len(text) == 0 {
		return f, nil
	}
	i, err := httpconn.ParseImported(string(text))
	if err != nil {
		return nil, err
	}
	f.doc, f.leftOut = i.OpenAPI, i.LeftOut
	tree, err := parse(text)
	if err != nil {
		return nil, err
	}
	root, _ := tree.(map[string]any)
	for key, into := range map[string]map[string]entry{"operations": f.accepted, "set_aside": f.aside} {
		all, _ := root[key].(map[string]any)
		for name, v := range all {
			fields, _ := v.(map[string]any)
			var e entry
			about, err := json.Marshal(fields["imported"])
			if err == nil {
				err = json.Unmarshal(about, &e.imported)
			}
			if err != nil {
				return nil, fmt.Errorf("%s.%s.imported: %w", key, name, err)
			}
			delete(fields, "imported")
			e.fields = fields
			into[name] = e
		}
	}
	return f, nil
}

// Import merges derived operations into the file. New operations, and accepted ones that have
// changed, are disabled until accept returns true. An accepted operation with an unchanged
// derivation keeps its entry, including edits. only has the patterns (path.Match) of the
// operations to import; nil means those of the last import, and an empty list all.
func (f *File) Import(api *API, only []string, accept func(name string) bool) ([]Line, error) {
	if only == nil {
		only = f.doc.Only
	}
	wanted := func(name string) bool {
		return len(only) == 0 ||
			slices.ContainsFunc(only, func(p string) bool { ok, _ := path.Match(p, name); return ok })
	}
	for _, p := range only {
		if _, err := path.Match(p, ""); err != nil {
			return nil, fmt.Errorf("%s is not a valid pattern", gatehouse.Quote(p))
		}
	}
	f.doc = httpconn.Document{Title: api.Title, Version: api.Version, SHA256: api.SHA256, Only: only}
	accepted, aside := map[string]entry{}, map[string]entry{}
	var lines []Line
	for _, name := range slices.Sorted(maps.Keys(api.Operations)) {
		if !wanted(name) {
			continue
		}
		e, state, updated := f.classify(name, api.Operations[name])
		if state != Accepted && accept(name) {
			state, updated = Accepted, true
			e.imported.Differs = nil
		}
		if state == Accepted {
			accepted[name] = e
		} else {
			aside[name] = e
		}
		lines = append(lines, e.line(name, state, updated))
	}
	removed := maps.Clone(f.accepted)
	maps.Copy(removed, f.aside)
	maps.DeleteFunc(removed, func(name string, _ entry) bool { return wanted(name) && has(api.Operations, name) })
	f.accepted, f.aside, f.leftOut = accepted, aside, map[string]string{}
	for name, why := range api.LeftOut {
		if wanted(name) {
			f.leftOut[name] = why
			lines = append(lines, Line{Name: name, State: LeftOut, Updated: has(removed, name), Why: []string{why}})
			delete(removed, name)
		}
	}
	for name, e := range removed {
		if has(api.Operations, name) || has(api.LeftOut, name) {
			why := "no pattern of the import matches it"
			lines = append(lines, Line{Name: name, State: LeftOut, Updated: true, Why: []string{why}})
			continue
		}
		lines = append(lines, e.line(name, Gone, true))
	}
	slices.SortFunc(lines, func(a, b Line) int { return strings.Compare(a.Name, b.Name) })
	return lines, nil
}

// classify compares a derived operation with its entry in the file.
func (f *File) classify(name string, op Operation) (e entry, state State, updated bool) {
	e = entry{
		fields:   op.Entry,
		imported: origin{Digest: op.Digest, Why: op.Why, Money: op.Money, Currency: op.Currency},
	}
	was, wasAccepted := f.accepted[name]
	waits, waited := f.aside[name]
	switch {
	case wasAccepted && was.imported.Digest == op.Digest:
		return was, Accepted, false
	case waited && waits.imported.Digest == op.Digest:
		if len(waits.imported.Differs) > 0 {
			return waits, Changed, false
		}
		return waits, New, false
	case wasAccepted:
		e.keepFloor(was)
		e.imported.Differs = differences(was.fields, e.fields)
		if len(e.imported.Differs) == 0 { // a person has edited the entry to what the document says now
			return e, Accepted, true
		}
		return e, Changed, true
	case waited:
		e.keepFloor(waits)
		if e.imported.Differs = waits.imported.Differs; len(e.imported.Differs) > 0 {
			e.imported.Differs = few(append(slices.Clone(e.imported.Differs), differences(waits.fields, e.fields)...))
			return e, Changed, true
		}
	}
	return e, New, true
}

// keepFloor keeps the level of the previous entry if that level is higher: a changed document never lowers a level.
func (e *entry) keepFloor(was entry) {
	if was.floor() > e.floor() {
		e.fields = maps.Clone(e.fields)
		e.fields["floor"] = int(was.floor())
	}
}

func (e *entry) floor() gatehouse.RiskLevel {
	switch n := e.fields["floor"].(type) {
	case int:
		return gatehouse.RiskLevel(n)
	case json.Number:
		level, _ := n.Int64()
		return gatehouse.RiskLevel(level)
	}
	return 0
}

func (e *entry) line(name string, state State, updated bool) Line {
	text := func(key string) string { s, _ := e.fields[key].(string); return s }
	return Line{
		Name: name, State: state, Updated: updated, Class: text("class"), Floor: e.floor(),
		Request: text("method") + " " + text("path"),
		Why:     e.imported.Why, Differs: e.imported.Differs, Money: e.imported.Money, Currency: e.imported.Currency,
	}
}

// Decode parses an operation like the http connector does.
func Decode(fields map[string]any) (httpconn.Operation, error) {
	var op httpconn.Operation
	var root yaml.Node
	text, err := yaml.Dump(node(fields))
	if err == nil {
		err = yaml.Load(text, &root)
	}
	if err == nil {
		err = root.Load(&op, yaml.WithKnownFields())
	}
	return op, err
}

const head = `# Written by gatehouse connector import. Entries of operations can be proposed, those of
# set_aside cannot. A floor can be raised or lowered here: an edited floor stays until the
# operation changes in the document; after that, a raised floor stays, and a lowered floor
# is replaced.
`

// Text returns the file's content.
func (f *File) Text() ([]byte, error) {
	root := map[string]any{"openapi": map[string]any{
		"title": f.doc.Title, "version": f.doc.Version, "sha256": f.doc.SHA256, "only": list(f.doc.Only),
	}}
	for key, all := range map[string]map[string]entry{"operations": f.accepted, "set_aside": f.aside} {
		out := map[string]any{}
		for name, e := range all {
			fields := maps.Clone(e.fields)
			fields["imported"] = map[string]any{
				"digest": e.imported.Digest, "why": list(e.imported.Why), "money": list(e.imported.Money),
				"currency": e.imported.Currency, "differs": list(e.imported.Differs),
			}
			out[name] = fields
		}
		root[key] = out
	}
	if f.leftOut != nil {
		left := map[string]any{}
		for name, why := range f.leftOut {
			left[name] = why
		}
		root["left_out"] = left
	}
	text, err := yaml.Dump(node(root))
	if err != nil {
		return nil, err
	}
	text = append([]byte(head), text...)
	if _, err := httpconn.ParseImported(string(text)); err != nil {
		return nil, fmt.Errorf("the new file cannot be parsed: %w", err)
	}
	return text, nil
}

// StoredText is Text without left_out, for a connector in the store: the store limits the size.
func (f *File) StoredText() ([]byte, error) {
	short := *f
	short.leftOut = nil
	return short.Text()
}

func list(all []string) []any {
	out := make([]any, len(all))
	for i, s := range all {
		out[i] = s
	}
	return out
}

// first lists the keys that precede the others.
var first = []string{
	"openapi",
	"operations",
	"set_aside",
	"left_out",
	"method",
	"path",
	"class",
	"floor",
	"title",
	"digest",
}

// node converts a tree to YAML with keys in a fixed order. It omits empty lists and texts of the
// import's data.
func node(v any) *yaml.Node {
	switch v := v.(type) {
	case map[string]any:
		n := &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map"}
		keys := slices.Collect(maps.Keys(v))
		slices.SortFunc(keys, func(a, b string) int {
			if i, j := keyOrder(a), keyOrder(b); i != j {
				return i - j
			}
			return strings.Compare(a, b)
		})
		for _, key := range keys {
			if l, ok := v[key].([]any); ok && len(l) == 0 && slices.Contains([]string{"only", "why", "money", "differs"}, key) ||
				key == "currency" && v[key] == "" {
				continue
			}
			n.Content = append(n.Content, text(key), node(v[key]))
		}
		if len(n.Content) == 0 {
			n.Style = yaml.FlowStyle
		}
		return n
	case []any:
		n := &yaml.Node{Kind: yaml.SequenceNode, Tag: "!!seq"}
		for _, e := range v {
			n.Content = append(n.Content, node(e))
		}
		if len(n.Content) == 0 {
			n.Style = yaml.FlowStyle
		}
		return n
	case string:
		return text(v)
	case []string:
		return node(list(v))
	case nil:
		return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!null", Value: "null"}
	}
	b, err := json.Marshal(v)
	if err != nil {
		panic("openapi: " + err.Error()) // numbers and booleans always marshal
	}
	tag := "!!float"
	switch s := string(b); {
	case s == "true" || s == "false":
		tag = "!!bool"
	case !bytes.ContainsAny(b, ".eE"):
		tag = "!!int"
	}
	return &yaml.Node{Kind: yaml.ScalarNode, Tag: tag, Value: string(b)}
}

func keyOrder(key string) int {
	if i := slices.Index(first, key); i >= 0 {
		return i
	}
	return len(first)
}

// text returns a scalar that YAML always reads as a string.
func text(s string) *yaml.Node {
	return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: s}
}

// maxDiffers limits the listed differences.
const maxDiffers = 20

// differences lists the JSON pointers at which two trees differ.
func differences(was, is any) []string {
	var out []string
	var walk func(at string, was, is any)
	walk = func(at string, was, is any) {
		if len(out) > maxDiffers || same(was, is) {
			return
		}
		a, isMap := was.(map[string]any)
		b, isMapToo := is.(map[string]any)
		if !isMap || !isMapToo {
			out = append(out, at+": "+brief(was)+" → "+brief(is))
			return
		}
		keys := slices.Collect(maps.Keys(a))
		for key := range b {
			if _, had := a[key]; !had {
				keys = append(keys, key)
			}
		}
		slices.Sort(keys)
		for _, key := range keys {
			here := at + gatehouse.JoinPointer(key)
			x, had := a[key]
			y, has := b[key]
			switch {
			case !had:
				out = append(out, here+": added, "+brief(y))
			case !has:
				out = append(out, here+": removed, was "+brief(x))
			default:
				walk(here, x, y)
			}
		}
	}
	walk("", was, is)
	return few(out)
}

// few limits a list of differences.
func few(list []string) []string {
	if len(list) > maxDiffers {
		return append(list[:maxDiffers], "…")
	}
	return list
}

func has[V any](m map[string]V, key string) bool {
	_, ok := m[key]
	return ok
}

func same(a, b any) bool {
	x, errX := json.Marshal(a)
	y, errY := json.Marshal(b)
	return errX == nil && errY == nil && bytes.Equal(x, y)
}

func brief(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		return "?"
	}
	return cut(string(b), 120)
}
