package policy

import (
	"bytes"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v4"

	"github.com/gatehouse-dev/gatehouse"
)

// maxSource and maxLines bound a policy file, in bytes and lines: its pages
// show and compare it line by line.
const (
	maxSource = 1 << 20
	maxLines  = 20_000
)

// reader reads YAML strictly, node by node, and collects what is wrong. It
// takes no anchors, tags or merge keys, and no scalar that YAML reads as
// something else than what stands there: 012 would be 10, a date a time.
type reader struct {
	source   [][]rune // lines
	problems []Problem
}

func (r *reader) fail(n *yaml.Node, format string, args ...any) {
	r.at(max(1, n.Line), max(1, n.Column), format, args...)
}

func (r *reader) at(line, column int, format string, args ...any) {
	if len(r.problems) < 100 {
		r.problems = append(r.problems, Problem{line, column, fmt.Sprintf(format, args...)})
	}
}

// load parses the one document of a source; nil when it cannot.
func (r *reader) load(source []byte) *yaml.Node {
	switch {
	case len(source) > maxSource:
		r.at(1, 1, "the policy is longer than %d bytes", maxSource)
		return nil
	case bytes.Count(source, []byte("\n")) > maxLines:
		r.at(1, 1, "the policy is longer than %d lines", maxLines)
		return nil
	case !utf8.Valid(source):
		r.at(1, 1, "the policy is not UTF-8")
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
		r.at(1, 1, "the policy is empty")
		return nil
	}
	before := len(r.problems)
	r.plain(doc.Content[0])
	if len(r.problems) > before {
		return nil
	}
	return doc.Content[0]
}

func (r *reader) syntax(err error) {
	var one *yaml.LoadError
	if !errors.As(err, &one) {
		r.at(1, 1, "%s", oneLine(err.Error()))
		return
	}
	mark := one.Mark
	if mark.Line == 0 {
		mark = one.ContextMark
	}
	r.at(max(1, mark.Line), max(1, mark.Column), "%s", strings.TrimPrefix(one.Message, "yaml: "))
}

// plain refuses what makes YAML mean something else than it shows.
func (r *reader) plain(n *yaml.Node) {
	switch {
	case n.Kind == yaml.AliasNode || n.Anchor != "":
		r.fail(n, "anchors and aliases are not taken")
		return
	case n.Style&yaml.TaggedStyle != 0:
		r.fail(n, "tags are not taken")
		return
	}
	for _, c := range n.Content {
		r.plain(c)
	}
}

// mapping returns the values of a mapping by key. Only the known keys are
// taken; with none, any.
func (r *reader) mapping(n *yaml.Node, what string, known ...string) fields {
	if n.Kind != yaml.MappingNode {
		r.fail(n, "%s must be a mapping", what)
		return fields{}
	}
	f := fields{node: n, values: make(map[string]*yaml.Node, len(n.Content)/2)}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		name := key.Value
		switch {
		case key.Kind != yaml.ScalarNode:
			r.fail(key, "a key must be a single word")
			continue
		case key.ShortTag() == "!!merge":
			r.fail(key, "merge keys are not taken")
			continue
		case f.values[name] != nil:
			r.fail(key, "%s stands twice", gatehouse.Quote(name))
			continue
		case len(known) > 0 && !contained(known, name):
			r.fail(key, "%s has no key %s; it has %s", what, gatehouse.Quote(name), strings.Join(known, ", "))
			continue
		}
		f.values[name] = value
		f.keys = append(f.keys, key)
	}
	return f
}

// fields are the entries of a mapping.
type fields struct {
	node   *yaml.Node
	keys   []*yaml.Node // in the order of the file
	values map[string]*yaml.Node
}

func contained(list []string, s string) bool {
	for _, l := range list {
		if l == s {
			return true
		}
	}
	return false
}

// list returns the items of a sequence.
func (r *reader) list(n *yaml.Node, what string) []*yaml.Node {
	if n == nil {
		return nil
	}
	if n.Kind != yaml.SequenceNode {
		r.fail(n, "%s must be a list", what)
		return nil
	}
	return n.Content
}

// text returns a string. Anything that YAML reads as another kind has to be quoted.
func (r *reader) text(n *yaml.Node, what string) string {
	if n == nil {
		return ""
	}
	if n.Kind != yaml.ScalarNode || n.ShortTag() != "!!str" {
		r.fail(n, "%s must be text; put it in quotes", what)
		return ""
	}
	if n.Value == "" {
		r.fail(n, "%s is empty", what)
	}
	return n.Value
}

// name returns a text that can name something.
func (r *reader) name(n *yaml.Node, what string) string {
	s := r.text(n, what)
	if s != "" && !gatehouse.ValidName(s) {
		r.fail(n, "%s must be letters, digits, or any of ._@:+-", what)
	}
	return s
}

// texts returns a list of different strings.
func (r *reader) texts(n *yaml.Node, what string) []string {
	var out []string
	for _, item := range r.list(n, what) {
		s := r.text(item, what)
		if contained(out, s) {
			r.fail(item, "%s stands twice", gatehouse.Quote(s))
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

// whole returns an integer as it is written, from 1 to high.
func (r *reader) whole(n *yaml.Node, what string, high int) int {
	if n == nil {
		return 0
	}
	if n.Kind == yaml.ScalarNode && n.Style == 0 && wholeForm.MatchString(n.Value) {
		if i, err := strconv.Atoi(n.Value); err == nil && i >= 1 && i <= high {
			return i
		}
	}
	r.fail(n, "%s must be a whole number from 1 to %d", what, high)
	return 0
}

// duration reads 30s, 4h, 7d within bounds.
func (r *reader) duration(n *yaml.Node, what string, low, high gatehouse.Duration) gatehouse.Duration {
	if n == nil {
		return 0
	}
	if n.Kind != yaml.ScalarNode {
		r.fail(n, "%s must be a duration such as 30s, 4h or 7d", what)
		return 0
	}
	d, err := gatehouse.ParseDuration(n.Value)
	switch {
	case err != nil:
		r.fail(n, "%s: %v", what, err)
	case d < low || d > high:
		r.fail(n, "%s must be from %s to %s", what, low, high)
	}
	return d
}

// amount reads an exact decimal number, quoted or not.
func (r *reader) amount(n *yaml.Node, what string) gatehouse.Decimal {
	if n.Kind != yaml.ScalarNode || !decimalForm.MatchString(n.Value) {
		r.fail(n, "%s must be a number such as 1000.00", what)
		return ""
	}
	d, err := gatehouse.ParseDecimal(n.Value)
	if err != nil {
		r.fail(n, "%s: %v", what, err)
	}
	return d
}

// json makes JSON of a node. Numbers keep their digits.
func (r *reader) json(n *yaml.Node) gatehouse.JSON {
	switch n.Kind {
	case yaml.MappingNode:
		f := r.mapping(n, "an object")
		members := make([]gatehouse.Member, len(f.keys))
		for i, key := range f.keys {
			members[i] = gatehouse.Member{Name: key.Value, Value: r.json(f.values[key.Value])}
		}
		return gatehouse.ObjectJSON(members...)
	case yaml.SequenceNode:
		values := make([]gatehouse.JSON, len(n.Content))
		for i, c := range n.Content {
			values[i] = r.json(c)
		}
		return gatehouse.ArrayJSON(values...)
	}
	switch n.ShortTag() {
	case "!!str":
		return gatehouse.StringJSON(n.Value)
	case "!!null":
		return "null"
	case "!!bool":
		if n.Value == "true" || n.Value == "false" {
			return gatehouse.JSON(n.Value)
		}
	case "!!int", "!!float":
		if decimalForm.MatchString(n.Value) && len(n.Value) <= gatehouse.MaxNumberChars {
			return gatehouse.JSON(n.Value)
		}
	}
	r.fail(n, "%s means something else in YAML than in JSON; put it in quotes", gatehouse.Quote(n.Value))
	return "null"
}
