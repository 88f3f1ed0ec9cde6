package console

import (
	"fmt"
	"net/http"
	"regexp"
	"strings"
)

const (
	designPath      = "/console/design"
	designSheetPath = "/console/design/samples.css"
)

// designRoutes show developers the design tokens and components, on a development server only.
func (c *Console) designRoutes() []route {
	if !c.cfg.Development {
		return nil
	}
	return []route{
		{pattern: "GET " + designPath, public: true, handle: c.design},
		{pattern: "GET " + designSheetPath, public: true, handle: c.designSheet},
	}
}

// token is a custom property in the style sheet's first rule.
type token struct {
	Name, Value string
	Kind        string // shadow, type, weight, face, radius, colour or space
}

// tokenGroup is a group of tokens under one comment.
type tokenGroup struct {
	Title  string
	Tokens []token
}

var tokenLine = regexp.MustCompile(`^\s*(--[a-z0-9-]+):\s*(.+);$`)

// tokenGroups parses the tokens from the style sheet itself, so the page always shows the values in
// use.
func tokenGroups(sheet string) []tokenGroup {
	_, rest, _ := strings.Cut(sheet, "\n:root {\n")
	rest, _, _ = strings.Cut(rest, "\n}\n")
	var groups []tokenGroup
	for line := range strings.Lines(rest) {
		line = strings.TrimSpace(line)
		if title, ok := strings.CutPrefix(line, "/* "); ok {
			groups = append(groups, tokenGroup{Title: strings.TrimSuffix(title, " */")})
			continue
		}
		m := tokenLine.FindStringSubmatch(line)
		if m == nil || len(groups) == 0 {
			continue
		}
		g := &groups[len(groups)-1]
		g.Tokens = append(g.Tokens, token{Name: m[1], Value: m[2], Kind: tokenKind(m[1], m[2])})
	}
	return groups
}

func tokenKind(name, value string) string {
	switch {
	case strings.HasPrefix(name, "--e") && strings.HasPrefix(value, "0 "):
		return "shadow"
	case strings.HasPrefix(name, "--t-"):
		return "type"
	case strings.HasPrefix(name, "--w-"):
		return "weight"
	case name == "--sans", name == "--mono":
		return "face"
	case strings.HasPrefix(name, "--radius"), name == "--round":
		return "radius"
	case strings.Contains(value, "#"), strings.HasPrefix(value, "rgb"):
		return "colour"
	}
	return "space"
}

// design shows the design tokens.
func (c *Console) design(v *view) error {
	return v.render(http.StatusOK, "Design", "", designPage(v, tokenGroups(string(c.assets.files["console.css"].body))))
}

// designSheet has a class for each token's sample, because the Content-Security-Policy forbids inline
// styles.
func (c *Console) designSheet(v *view) error {
	var b strings.Builder
	for _, g := range tokenGroups(string(c.assets.files["console.css"].body)) {
		for _, t := range g.Tokens {
			property := map[string]string{
				"shadow": "box-shadow", "type": "font-size", "weight": "font-weight", "face": "font-family",
				"radius": "border-radius",
				"colour": "background", "space": "width",
			}[t.Kind]
			fmt.Fprintf(&b, ".sample%s { %s: var(%s); }\n", t.Name, property, t.Name)
		}
	}
	v.w.Header().Set("Content-Type", "text/css; charset=utf-8")
	_, _ = v.w.Write([]byte(b.String()))
	return nil
}
