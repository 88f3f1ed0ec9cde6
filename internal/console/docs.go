package console

import (
	"bytes"
	"io/fs"
	"net/http"
	"net/url"
	"path"
	"strings"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/text"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/docs"
)

const (
	docsPath  = "/docs/"
	docsIndex = "README"
)

func (c *Console) docRoutes() []route {
	return []route{{pattern: "GET " + docsPath + "{page...}", handle: c.doc}}
}

// docPath is the address of a page of the documentation, such as connectors/jira.md#set-up.
func docPath(page string) string {
	name, section, _ := strings.Cut(page, "#")
	u := url.URL{Path: docsPath + strings.TrimSuffix(name, ".md"), Fragment: section}
	return u.String()
}

func (c *Console) doc(v *view) error {
	name := v.r.PathValue("page")
	if name == "" {
		return v.redirect(docsPath + docsIndex)
	}
	source, err := fs.ReadFile(docs.Pages, name+".md")
	if err != nil {
		return gatehouse.E(gatehouse.CodeNotFound, "the documentation has no such page")
	}
	title, html, err := renderDoc(name, source)
	if err != nil {
		return err
	}
	return v.render(http.StatusOK, title, "", docBody(name, html))
}

// renderDoc renders a page of Markdown. It leaves out embedded HTML, pictures, and links to files that are not
// pages.
func renderDoc(name string, source []byte) (title, html string, err error) {
	markdown := goldmark.New(
		goldmark.WithExtensions(extension.Table), goldmark.WithParserOptions(parser.WithAutoHeadingID()),
	)
	page := markdown.Parser().Parse(text.NewReader(source))
	var links, pictures, headings []ast.Node
	_ = ast.Walk(page, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		switch {
		case !entering:
		case n.Kind() == ast.KindLink:
			links = append(links, n)
		case n.Kind() == ast.KindImage:
			pictures = append(pictures, n)
		case n.Kind() == ast.KindHeading:
			headings = append(headings, n)
		}
		return ast.WalkContinue, nil
	})
	for _, n := range links {
		rewriteLink(name, n.(*ast.Link))
	}
	for _, n := range pictures {
		if parent := n.Parent(); parent.ChildCount() == 1 {
			parent.Parent().RemoveChild(parent.Parent(), parent)
		} else {
			parent.RemoveChild(parent, n)
		}
	}
	for _, n := range headings {
		if title == "" {
			title = headingText(n, source)
		}
		linkHeading(n)
	}
	var b bytes.Buffer
	if err := markdown.Renderer().Render(&b, source, page); err != nil {
		return "", "", err
	}
	// Text contains &lt; instead of <, so these strings are elements.
	return title, strings.NewReplacer(
		"<table>", `<div class="scroll" tabindex="0" role="group" aria-label="Table"><table class="list">`,
		"</table>", "</table></div>", "<pre>", `<pre tabindex="0">`,
	).Replace(b.String()), nil
}

// rewriteLink changes the destination of a link to another page to that page's URL in the console. A link to any
// other file is replaced by its text.
func rewriteLink(name string, n *ast.Link) {
	to, err := url.Parse(string(n.Destination))
	if err != nil || to.IsAbs() || to.Path == "" {
		return
	}
	file := path.Join(path.Dir(name), to.Path)
	if _, err := fs.Stat(docs.Pages, file); err == nil && strings.HasSuffix(file, ".md") {
		to.Path = docsPath + strings.TrimSuffix(file, ".md")
		n.Destination = []byte(to.String())
		return
	}
	parent := n.Parent()
	for child := n.FirstChild(); child != nil; child = n.FirstChild() {
		parent.InsertBefore(parent, n, child)
	}
	parent.RemoveChild(parent, n)
}

// linkHeading makes a heading a link to itself.
func linkHeading(n ast.Node) {
	id, _ := n.AttributeString("id")
	anchor, ok := id.([]byte)
	if !ok {
		return
	}
	link := ast.NewLink()
	link.Destination = append([]byte("#"), anchor...)
	link.SetAttributeString("class", []byte("anchor"))
	for child := n.FirstChild(); child != nil; child = n.FirstChild() {
		link.AppendChild(link, child)
	}
	n.AppendChild(n, link)
}

func headingText(n ast.Node, source []byte) string {
	var b strings.Builder
	_ = ast.Walk(n, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if t, ok := n.(*ast.Text); ok && entering {
			b.Write(t.Value(source))
		}
		return ast.WalkContinue, nil
	})
	return b.String()
}
