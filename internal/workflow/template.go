package workflow

import (
	"strings"

	"cel.dev/cel-go/common/types/ref"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/expr"
)

// maxExpressions bounds the expressions of one template.
const maxExpressions = 500

// Template is a JSON value with expressions in its strings. A string that is a
// single ${{ … }} becomes the expression's value, of any type; in a longer
// string, values are inserted as text. $${{ is a literal ${{.
type Template struct {
	root node
	// literal is set when there is no expression.
	literal gatehouse.JSON
}

// node is a value of a template, in the first field that is set.
type node struct {
	expr    *Expr
	parts   []part // a string
	members []namedNode
	items   []node
	literal gatehouse.JSON
}

type namedNode struct {
	name string
	node
}

// part is a piece of a string: an expression or literal text.
type part struct {
	expr *Expr
	text string
}

// Eval computes the value, at most [MaxOutput] bytes. Errors have code invalid.
func (t *Template) Eval(s *Scope) (gatehouse.JSON, error) {
	if t.literal != "" {
		return t.literal, nil
	}
	m := maker{activation: activation{Scope: s}, left: MaxOutput}
	return whole(m.value(&t.root))
}

// Text computes a string. If the template is a single expression, its value
// must be a string, a number or a boolean.
func (t *Template) Text(s *Scope) (string, error) {
	j, err := t.Eval(s)
	if err != nil {
		return "", err
	}
	if text, ok := j.Text(); ok {
		return text, nil
	}
	if j == "null" || j[0] == '{' || j[0] == '[' {
		return "", gatehouse.E(gatehouse.CodeInvalid, "the template gives %s, not a text", expr.Brief(string(j), 40))
	}
	return string(j), nil
}

// maker evaluates one template. It counts the bytes that it produces, to bound
// the result while it grows.
type maker struct {
	activation
	left int
}

func (m *maker) value(n *node) (gatehouse.JSON, error) {
	switch {
	case n.expr != nil:
		v, err := m.eval(n.expr)
		if err != nil {
			return "", err
		}
		return m.take(expr.ToJSON(v, m.left))
	case n.parts != nil:
		return m.text(n.parts)
	case n.members != nil:
		members := make([]gatehouse.Member, len(n.members))
		for i := range n.members {
			v, err := m.value(&n.members[i].node)
			if err != nil {
				return "", err
			}
			members[i] = gatehouse.Member{Name: n.members[i].name, Value: v}
		}
		return gatehouse.ObjectJSON(members...), nil
	case n.items != nil:
		values := make([]gatehouse.JSON, len(n.items))
		for i := range n.items {
			v, err := m.value(&n.items[i])
			if err != nil {
				return "", err
			}
			values[i] = v
		}
		return gatehouse.ArrayJSON(values...), nil
	}
	return m.take(n.literal, nil)
}

func (m *maker) take(j gatehouse.JSON, err error) (gatehouse.JSON, error) {
	if err != nil {
		return "", err
	}
	if m.left -= len(j); m.left < 0 {
		return "", expr.ErrTooLarge
	}
	return j, nil
}

func (m *maker) text(parts []part) (gatehouse.JSON, error) {
	var b strings.Builder
	for _, p := range parts {
		s := p.text
		if p.expr != nil {
			v, err := m.eval(p.expr)
			if err != nil {
				return "", err
			}
			if s, err = expr.Text(v); err != nil {
				return "", gatehouse.E(gatehouse.CodeInvalid, "%s: %v", expr.Brief(p.expr.Source, 80), err)
			}
		}
		if b.Len()+len(s) > m.left {
			return "", expr.ErrTooLarge
		}
		b.WriteString(s)
	}
	return m.take(gatehouse.StringJSON(b.String()), nil)
}

func (m *maker) eval(e *Expr) (ref.Val, error) { return e.eval(&m.activation) }

// piece is a part of a string before its expression is compiled.
type piece struct {
	source bool
	text   string
	offset int // of an expression's first rune in the whole string
}

// pieces splits a string. bad is the index of the rune at which an unterminated
// expression begins, -1 when there is none.
func pieces(s string) (list []piece, bad int) {
	runes := []rune(s)
	var plain []rune
	for i := 0; i < len(runes); {
		switch {
		case starts(runes[i:], "$${{"):
			plain = append(plain, []rune("${{")...)
			i += 4
		case starts(runes[i:], "${{"):
			end := closing(runes, i+3)
			if end < 0 {
				return nil, i
			}
			if len(plain) > 0 {
				list = append(list, piece{text: string(plain)})
				plain = nil
			}
			list = append(list, piece{true, string(runes[i+3 : end]), i + 3})
			i = end + 2
		default:
			plain = append(plain, runes[i])
			i++
		}
	}
	if len(plain) > 0 {
		list = append(list, piece{text: string(plain)})
	}
	return list, -1
}

func starts(runes []rune, prefix string) bool {
	return len(runes) >= len(prefix) && string(runes[:len(prefix)]) == prefix
}

// closing returns the index of the }} that ends the expression at i, -1 when there is
// none. It skips strings, comments and map braces.
func closing(runes []rune, i int) int {
	depth := 0
	for i < len(runes) {
		switch c := runes[i]; {
		case c == '"' || c == '\'':
			raw := i > 0 && (runes[i-1] == 'r' || runes[i-1] == 'R')
			if i = skipText(runes, i, raw); i < 0 {
				return -1
			}
			continue
		case starts(runes[i:], "//"):
			for i < len(runes) && runes[i] != '\n' {
				i++
			}
			continue
		case c == '{':
			depth++
		case c == '}' && depth > 0:
			depth--
		case starts(runes[i:], "}}"):
			return i
		}
		i++
	}
	return -1
}

// skipText returns the index after the string literal that begins at i, -1 when
// it is not terminated.
func skipText(runes []rune, i int, raw bool) int {
	quote := string(runes[i])
	if starts(runes[i:], strings.Repeat(quote, 3)) {
		quote = strings.Repeat(quote, 3)
	}
	for i += len(quote); i < len(runes); i++ {
		switch {
		case runes[i] == '\\' && !raw:
			i++
		case starts(runes[i:], quote):
			return i + len(quote)
		}
	}
	return -1
}
