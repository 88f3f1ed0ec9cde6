package form

import (
	"bytes"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v4"

	"github.com/gatehouse-dev/gatehouse"
)

// Reader parses YAML strictly, node by node, and collects the problems. For example, it refuses 012,
// which YAML would interpret as 10, and a date, which would be a time.
type Reader struct {
	// What names the kind of document in problems, such as "policy".
	What string
	// MaxBytes and MaxLines limit the source.
	MaxBytes, MaxLines int
	Problems           []Problem
	source             [][]rune // the lines of the source
}

// Fail adds a problem at a node.
func (r *Reader) Fail(n *yaml.Node, format string, args ...any) {
	r.At(max(1, n.Line), max(1, n.Column), format, args...)
}

// At adds a problem at a position; line and column count from 1. A reader keeps its first 100 problems.
func (r *Reader) At(line, column int, format string, args ...any) {
	if len(r.Problems) < 100 {
		r.Problems = append(r.Problems, Problem{line, column, fmt.Sprintf(format, args...)})
	}
}

// Load parses a source with one document. It returns nil when it finds a problem.
func (r *Reader) Load(source []byte) *yaml.Node {
	switch {
	case len(source) > r.MaxBytes:
		r.At(1, 1, "the %s is longer than %d bytes", r.What, r.MaxBytes)
		return nil
	case bytes.Count(source, []byte("\n")) > r.MaxLines:
		r.At(1, 1, "the %s is longer than %d lines", r.What, r.MaxLines)
		return nil
	case !utf8.Valid(source):
		r.At(1, 1, "the %s is not UTF-8", r.What)
		return nil
	}
	for _, line := range strings.Split(string(source), "\n") {
		r.source = append(r.source, []rune(strings.TrimSuffix(line, "\r")))
	}
	var doc yaml.Node
	if err := yaml.Load(source, &doc); err != nil {
		r.syntax(err)
		return nil
	}
	if doc.Kind != yaml.DocumentNode || len(doc.Content) != 1 {
		r.At(1, 1, "the %s is empty", r.What)
		return nil
	}
	before := len(r.Problems)
	r.refuseSyntax(doc.Content[0])
	if len(r.Problems) > before {
		return nil
	}
	return doc.Content[0]
}

func (r *Reader) syntax(err error) {
	var one *yaml.LoadError
	if !errors.As(err, &one) {
		r.At(1, 1, "%s", OneLine(err.Error()))
		return
	}
	mark := one.Mark
	if mark.Line == 0 {
		mark = one.ContextMark
	}
	r.At(max(1, mark.Line), max(1, mark.Column), "%s", strings.TrimPrefix(one.Message, "yaml: "))
}

// refuseSyntax refuses anchors, aliases and tags.
func (r *Reader) refuseSyntax(n *yaml.Node) {
	switch {
	case n.Kind == yaml.AliasNode || n.Anchor != "":
		r.Fail(n, "anchors and aliases are not supported")
		return
	case n.Style&yaml.TaggedStyle != 0:
		r.Fail(n, "tags are not supported")
		return
	}
	for _, c := range n.Content {
		r.refuseSyntax(c)
	}
}

// Mapping returns the values of a mapping by key. A key that is not in known is a problem; an
// empty known accepts all keys.
func (r *Reader) Mapping(n *yaml.Node, what string, known ...string) Fields {
	if n.Kind != yaml.MappingNode {
		r.Fail(n, "%s must be a mapping", what)
		return Fields{}
	}
	f := Fields{Node: n, Values: make(map[string]*yaml.Node, len(n.Content)/2)}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		name := key.Value
		switch {
		case key.Kind != yaml.ScalarNode:
			r.Fail(key, "a key must be text, not a list or a mapping")
			continue
		case key.ShortTag() == "!!merge":
			r.Fail(key, "merge keys are not supported")
			continue
		case f.Values[name] != nil:
			r.Fail(key, "%s appears twice", gatehouse.Quote(name))
			continue
		case len(known) > 0 && !slices.Contains(known, name):
			r.Fail(key, "%s has no key %s; it has %s", what, gatehouse.Quote(name), strings.Join(known, ", "))
			continue
		}
		f.Values[name] = value
		f.Keys = append(f.Keys, key)
	}
	return f
}

// Fields are the entries of a mapping.
type Fields struct {
	Node   *yaml.Node
	Keys   []*yaml.Node // in the order of the file
	Values map[string]*yaml.Node
}

// List returns the items of a sequence.
func (r *Reader) List(n *yaml.Node, what string) []*yaml.Node {
	if n == nil {
		return nil
	}
	if n.Kind != yaml.SequenceNode {
		r.Fail(n, "%s must be a list", what)
		return nil
	}
	return n.Content
}

// Text returns a string. A value that YAML interprets as another type must be quoted.
func (r *Reader) Text(n *yaml.Node, what string) string {
	if n == nil {
		return ""
	}
	switch {
	case n.Kind != yaml.ScalarNode:
		r.Fail(n, "%s must be text, not a list or a mapping", what)
		return ""
	case n.ShortTag() != "!!str":
		r.Fail(n, "%s must be text; put it in quotes", what)
		return ""
	case n.Value == "":
		r.Fail(n, "%s is empty", what)
	}
	return n.Value
}

// Name returns a string, and adds a problem if it is not a valid name.
func (r *Reader) Name(n *yaml.Node, what string) string {
	s := r.Text(n, what)
	if s != "" && !gatehouse.ValidName(s) {
		r.Fail(n, "%s %s", what, gatehouse.NameRule)
	}
	return s
}

// Texts returns a list of distinct strings.
func (r *Reader) Texts(n *yaml.Node, what string) []string {
	var out []string
	for _, item := range r.List(n, what) {
		s := r.Text(item, what)
		if s != "" && slices.Contains(out, s) {
			r.Fail(item, "%s appears twice", gatehouse.Quote(s))
			continue
		}
		out = append(out, s)
	}
	return out
}

var (
	wholeForm   = regexp.MustCompile(`^(?:0|[1-9][0-9]{0,8})$`)
	decimalForm = regexp.MustCompile(`^-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?$`)
)

// Plain reports whether an unquoted number is valid in JSON too, and so has the same value in YAML
// and in JSON. It is true for every node that is not an unquoted number.
func Plain(n *yaml.Node) bool {
	switch n.ShortTag() {
	case "!!int", "!!float":
		return decimalForm.MatchString(n.Value)
	}
	return true
}

// Whole returns a decimal integer from 1 to high.
func (r *Reader) Whole(n *yaml.Node, what string, high int) int {
	if n == nil {
		return 0
	}
	if n.Kind == yaml.ScalarNode && n.Style == 0 && wholeForm.MatchString(n.Value) {
		if i, err := strconv.Atoi(n.Value); err == nil && i >= 1 && i <= high {
			return i
		}
	}
	r.Fail(n, "%s must be a whole number from 1 to %d", what, high)
	return 0
}

// Duration parses a duration such as 30s, 4h or 7d, and checks its limits.
func (r *Reader) Duration(n *yaml.Node, what string, low, high gatehouse.Duration) gatehouse.Duration {
	if n == nil {
		return 0
	}
	if n.Kind != yaml.ScalarNode {
		r.Fail(n, "%s must be a duration such as 30s, 4h or 7d", what)
		return 0
	}
	d, err := gatehouse.ParseDuration(n.Value)
	switch {
	case err != nil:
		r.Fail(n, "%s: %v", what, err)
	case d < low || d > high:
		r.Fail(n, "%s must be from %s to %s", what, low, high)
	}
	return d
}

// Amount parses an exact decimal number, quoted or not.
func (r *Reader) Amount(n *yaml.Node, what string) gatehouse.Decimal {
	if n.Kind != yaml.ScalarNode || !decimalForm.MatchString(n.Value) {
		r.Fail(n, "%s must be a number such as 1000.00", what)
		return ""
	}
	d, err := gatehouse.ParseDecimal(n.Value)
	if err != nil {
		r.Fail(n, "%s: %v", what, err)
	}
	return d
}

// JSON converts a node to JSON. Numbers keep their digits.
func (r *Reader) JSON(n *yaml.Node) gatehouse.JSON {
	switch n.Kind {
	case yaml.MappingNode:
		f := r.Mapping(n, "an object")
		members := make([]gatehouse.Member, len(f.Keys))
		for i, key := range f.Keys {
			members[i] = gatehouse.Member{Name: key.Value, Value: r.JSON(f.Values[key.Value])}
		}
		return gatehouse.ObjectJSON(members...)
	case yaml.SequenceNode:
		values := make([]gatehouse.JSON, len(n.Content))
		for i, c := range n.Content {
			values[i] = r.JSON(c)
		}
		return gatehouse.ArrayJSON(values...)
	}
	switch n.ShortTag() {
	case "!!str":
		if !beyondRange(n) {
			return gatehouse.StringJSON(n.Value)
		}
	case "!!null":
		return "null"
	case "!!bool":
		if n.Value == "true" || n.Value == "false" {
			return gatehouse.JSON(n.Value)
		}
	case "!!int", "!!float":
		switch {
		case decimalForm.MatchString(n.Value) && len(n.Value) > gatehouse.MaxNumberChars:
			r.Fail(n, "a number has more than %d characters", gatehouse.MaxNumberChars)
			return "null"
		case decimalForm.MatchString(n.Value):
			return gatehouse.JSON(n.Value)
		}
	}
	r.Fail(n, "%s means something else in YAML than in JSON; put it in quotes", gatehouse.Quote(n.Value))
	return "null"
}

// IsText reports whether a node is text in YAML and in JSON.
func IsText(n *yaml.Node) bool { return n.ShortTag() == "!!str" && !beyondRange(n) }

// beyondRange reports whether text is a number in JSON: the library reads an unquoted number beyond the range of a
// float64 as text.
func beyondRange(n *yaml.Node) bool { return n.Style == 0 && decimalForm.MatchString(n.Value) }
