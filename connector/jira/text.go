package jira

import (
	"strings"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/connector/internal/rest"
)

// document converts a text to a document with one plain paragraph per line
// (https://developer.atlassian.com/cloud/jira/platform/apis/document/structure/).
func document(text string) gatehouse.JSON {
	type node = map[string]any
	var paragraphs []node
	for line := range strings.SplitSeq(strings.ReplaceAll(text, "\r\n", "\n"), "\n") {
		p := node{"type": "paragraph"}
		if line != "" {
			p["content"] = []node{{"type": "text", "text": line}}
		}
		paragraphs = append(paragraphs, p)
	}
	return gatehouse.MustJSON(node{"type": "doc", "version": 1, "content": paragraphs})
}

// maxDepth limits the nesting depth up to which a document is read.
const maxDepth = 16

// textOf is the text of a document, one line per block. Other content, such as a picture, is shown
// as its type.
func textOf(doc gatehouse.JSON) string {
	var lines []string
	content, _ := doc.Get("content")
	blocks, _ := content.Elements()
	for _, b := range blocks {
		lines = append(lines, inline(b, 0))
	}
	return strings.Join(lines, "\n")
}

// isPlain reports whether a document has only paragraphs of plain text, as [document] makes them.
func isPlain(doc gatehouse.JSON) bool {
	content, _ := doc.Get("content")
	blocks, _ := content.Elements()
	for _, b := range blocks {
		inner, _ := b.Get("content")
		nodes, _ := inner.Elements()
		for _, n := range nodes {
			if marks, marked := n.Get("marks"); rest.Text(n, "type") != "text" || marked && marks != "[]" {
				return false
			}
		}
		if rest.Text(b, "type") != "paragraph" {
			return false
		}
	}
	return true
}

func inline(node gatehouse.JSON, depth int) string {
	t, _ := node.Get("type")
	kind, _ := t.Text()
	if kind == "text" {
		v, _ := node.Get("text")
		s, _ := v.Text()
		return s
	}
	content, ok := node.Get("content")
	children, err := content.Elements()
	if !ok || err != nil || depth > maxDepth {
		if kind == "paragraph" {
			return ""
		}
		return "[" + kind + "]"
	}
	var b strings.Builder
	for _, child := range children {
		b.WriteString(inline(child, depth+1))
	}
	return b.String()
}

// fieldsOf converts the members of a change to Jira's form.
func fieldsOf(change gatehouse.JSON) []gatehouse.Member {
	members, _ := change.Fields()
	out := make([]gatehouse.Member, 0, len(members))
	for _, m := range members {
		switch text, isText := m.Value.Text(); {
		case m.Name == "description" && isText && text == "":
			m.Value = "null"
		case m.Name == "description" && isText:
			m.Value = document(text)
		case m.Name == "issuetype":
			m.Value = gatehouse.ObjectJSON(gatehouse.Member{Name: "name", Value: m.Value})
		}
		out = append(out, m)
	}
	return out
}
