package config

import (
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write docs/configuration.md and connectorkeys.tsv")

const referencePage = "../../docs/configuration.md"

// keysFile has the same rows for [ConnectorKeys]: type, key, kind of value, "first" for a field's tag
// form:"first", meaning.
const keysFile = "connectorkeys.tsv"

// section is a part of the page: a struct whose keys are below another key.
type section struct{ title, page, below, dir, name string }

const connectorKey = "connectors.NAME"

// sections are the parts of the page. A connector is a folder with a Config; its page is the one of
// its name, if there is one.
func sections(t *testing.T) []section {
	t.Helper()
	list := []section{{"", "", "", ".", "file"}}
	dirs, err := filepath.Glob("../../connector/*")
	if err != nil {
		t.Fatal(err)
	}
	for _, dir := range dirs {
		if strings.HasSuffix(dir, "/internal") || parseStructs(t, dir)["Config"] == nil {
			continue
		}
		kind, page := filepath.Base(dir), "[connectors](connectors.md)"
		if kind == "mcp" {
			page = "[MCP](mcp.md)"
		} else if text, err := os.ReadFile("../../docs/connectors/" + kind + ".md"); err == nil {
			title, _, _ := strings.Cut(strings.TrimPrefix(string(text), "# "), "\n")
			page = fmt.Sprintf("[%s](connectors/%s.md)", title, kind)
		}
		list = append(list, section{"Connectors of type " + kind, page, connectorKey, dir, "Config"})
	}
	return append(list, section{"Keys below nats", "[events](events.md)", "nats", "../feed", "Config"})
}

// TestReference compares docs/configuration.md, and the keys of forms, with the structs that
// the file is read into: each key is there, with its type and its field's comment.
func TestReference(t *testing.T) {
	t.Parallel()
	var page, forms strings.Builder
	page.WriteString(strings.ReplaceAll(referenceIntro, "~", "`"))
	for _, s := range sections(t) {
		if s.title != "" {
			fmt.Fprintf(&page, "\n## %s\n\nSee %s.\n", s.title, s.page)
		}
		page.WriteString("\n")
		r := reference{t: t, out: &page, structs: parseStructs(t, s.dir), shown: map[string]string{},
			said: map[string]string{}}
		if s.below == connectorKey {
			r.forms, r.kind = &forms, strings.TrimPrefix(s.title, "Connectors of type ")
			r.known = []string{"type", "tenants", "allow_private", "timeout"} // in the introduction
		}
		r.keys("", s.name)
	}

	for name, want := range map[string]string{referencePage: page.String(), keysFile: forms.String()} {
		if *update {
			if err := os.WriteFile(name, []byte(want), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		got, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if string(got) != want {
			t.Errorf("%s differs from the structs: make generate", name)
		}
	}
}

// referenceIntro has ~ where the page has `.
const referenceIntro = `# Configuration keys

Every key of ~gatehouse.yaml~, generated from the program's source. Unknown keys are errors. A scalar may hold
~${NAME}~ for an environment variable, or be ~file:PATH~ for the content of a file.
NAME is a name of your choice, [] for each item of a list. A value without a type is a string. A secret
is written ~{secret: NAME}~, for an entry of ~secrets~. The keys of a connector are below ~connectors.NAME~, with these:

- ~type~: every connector has it.
- ~tenants~ list: the tenants that can use it; ~default~ alone by default. Also of models, channels and callbacks.
- ~timeout~ duration: the longest time of an HTTP or SMTP call with its reads; 30s, or 1m for netsuite.
- ~concurrency~ number: the most calls under way in each replica, 1 to 1000; no limit by default, 2 for netsuite.
  Not for worker and mcp.
- ~allow_private~ boolean: permits an address inside the network, and plain HTTP except for kubernetes. Also of
  models, channels and ~callbacks.step_functions~.
- ~floor~ number, levels: an operation's minimum level, 1 to 5; 3 unless its line below says otherwise.
- ~amounts~ list: [what holds money](connectors.md#amounts-of-money); known by its name by default.

At the top of the file:
`

// parseStructs returns the struct types of a folder's files, by name.
func parseStructs(t *testing.T, dir string) map[string]*ast.TypeSpec {
	t.Helper()
	structs := map[string]*ast.TypeSpec{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ParseComments)
		if err != nil {
			return err
		}
		for _, decl := range file.Decls {
			g, ok := decl.(*ast.GenDecl)
			if !ok {
				continue
			}
			for _, spec := range g.Specs {
				s, ok := spec.(*ast.TypeSpec)
				if !ok {
					continue
				}
				if s.Doc == nil {
					s.Doc = g.Doc
				}
				if _, ok := s.Type.(*ast.StructType); ok {
					structs[s.Name.Name] = s
				}
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return structs
}

// reference writes the keys of structs as a list.
type reference struct {
	t       *testing.T
	out     *strings.Builder
	structs map[string]*ast.TypeSpec
	forms   *strings.Builder  // the rows for forms, nil for none
	kind    string            // the type of connector
	known   []string          // top-level keys that another part of the page describes
	shown   map[string]string // where the keys of a struct are, by its name
	said    map[string]string // the prefix at which a key and its text are, by both
}

// repeated are keys in a row that another struct of the section has with the same texts.
type repeated struct {
	keys  []string
	first string // the other struct
	text  string // of the first key
}

// write writes the keys as one row. A single short text is written again.
func (r *repeated) write(out *strings.Builder) {
	switch {
	case len(r.keys) == 1 && len(strings.Fields(r.text)) < 9:
		fmt.Fprintf(out, "- %s: %s\n", r.keys[0], r.text)
	case len(r.keys) > 0:
		fmt.Fprintf(out, "- %s: as for %s.\n", strings.Join(r.keys, ", "), r.first)
	}
	*r = repeated{}
}

// keys writes the keys of a struct, once: where it occurs again, its row names the first place.
// Large structs follow below their own headings.
func (r reference) keys(prefix, name string) {
	fields := slices.Clone(r.structs[name].Type.(*ast.StructType).Fields.List)
	if name == "file" {
		slices.SortStableFunc(fields, func(a, b *ast.Field) int { return r.size(a) - r.size(b) })
	}
	names := map[string]string{}
	for _, f := range fields {
		for _, n := range f.Names {
			if key, _ := yamlKey(r.t, f); key != "" {
				names[n.Name] = key
			}
		}
	}

	var again repeated
	defer func() { again.write(r.out) }()
	for _, f := range fields {
		key, inline := yamlKey(r.t, f)
		kind, value, path := r.describe(f.Type)
		switch {
		case inline:
			r.keys(prefix, kind)
			continue
		case key == "" || key == "-" || prefix == "" && slices.Contains(r.known, key):
			continue
		}

		doc := f.Doc
		if name == "file" {
			doc = fieldOf(r.structs["Config"], f.Names[0].Name).Doc
		}
		text := comment(doc, names, key)
		if text == "" {
			r.t.Errorf("%s.%s has no comment", name, f.Names[0].Name)
		}
		if name == "file" && r.size(f) > 0 {
			fmt.Fprintf(r.out, "\n## %s\n\n", key)
		}
		top := key
		key = prefix + key + path
		first := r.shown[kind]
		if r.forms != nil {
			word := r.formKind(f.Type)
			if first != "" {
				word = "as " + first
			}
			fmt.Fprintf(r.forms, "%s\t%s\t%s\t%s\t%s\n", r.kind, key, word, tagOf(r.t, f).Get("form"), text)
		}
		if kind == "" && slices.Contains([]string{"amounts", "tenants", "allow_private"}, top) { // in the introduction
			continue
		}
		if first != "" {
			text += " Keys: as `" + first + "`."
		}
		if rest, ok := strings.CutPrefix(text, "The secret with "); ok && value == "secret" {
			text = strings.ToUpper(rest[:1]) + rest[1:]
		}
		switch value {
		case "":
		case "true or false":
			value = " boolean"
		case "map of strings or secrets":
			value = " map"
		default:
			value = " " + value
		}
		text = strings.TrimPrefix(text, "The minimum level; ") // the introduction says what a floor is
		if kind == "" {
			id := top + value + text
			if place := r.said[id]; place != "" {
				name := strings.TrimPrefix(key, prefix)
				if place != again.first {
					again.write(r.out)
					name, again.text = key, text
				}
				again.keys, again.first = append(again.keys, "`"+name+"`"+value), place
				continue
			}
			if prefix != "" {
				r.said[id] = "`" + strings.TrimSuffix(prefix, ".") + "`"
			}
		}
		again.write(r.out)
		if kind == "" || first != "" || !onlyNames(text) {
			fmt.Fprintf(r.out, "- `%s`%s: %s\n", key, value, text)
		}
		if kind != "" && first == "" {
			r.shown[kind] = key
			r.keys(key+".", kind)
		}
	}
}

// size is 1 for a field whose struct has more than two keys, else 0.
func (r reference) size(f *ast.Field) int {
	kind, _, _ := r.describe(f.Type)
	if s := r.structs[kind]; s != nil && len(s.Type.(*ast.StructType).Fields.List) > 2 {
		return 1
	}
	return 0
}

// onlyNames reports whether a comment only names the map, so that the rows of its keys suffice: a
// short sentence.
func onlyNames(text string) bool {
	return len(strings.Fields(text)) <= 8 && strings.Count(text, ".") == 1
}

// describe returns the struct that a type holds, the word for its value, and the suffix of its key
// in a path. A map of keys and a string have no word.
func (r reference) describe(expr ast.Expr) (kind, value, path string) {
	switch e := expr.(type) {
	case *ast.StarExpr:
		return r.describe(e.X)
	case *ast.ArrayType:
		kind, _, _ = r.describe(e.Elt)
		if kind != "" {
			return kind, "", "[]"
		}
		return "", "list", ""
	case *ast.MapType:
		kind, value, _ = r.describe(e.Value)
		switch {
		case kind != "":
			return kind, "", ".NAME"
		case value == "string or secret":
			return "", "map of strings or secrets", ""
		}
		return "", "map", ""
	case *ast.SelectorExpr:
		return "", scalar(e.Sel.Name), ""
	case *ast.Ident:
		switch s := r.structs[e.Name]; {
		case s != nil && namesSecret(r.t, s):
			return "", "secret", ""
		case s != nil && readsKeys(s):
			return e.Name, "", ""
		}
		return "", scalar(e.Name), ""
	}
	r.t.Fatalf("no words for %T", expr)
	return "", "", ""
}

// formKind is the kind of a value in forms; "" for a string. Maps and lists of objects are known by
// their path.
func (r reference) formKind(expr ast.Expr) string {
	switch e := expr.(type) {
	case *ast.StarExpr:
		return r.formKind(e.X)
	case *ast.ArrayType:
		if sel, ok := e.Elt.(*ast.SelectorExpr); ok && sel.Sel.Name == "AmountField" {
			return "list of amounts"
		}
	case *ast.MapType:
		switch elt := e.Value.(type) {
		case *ast.Ident:
			if elt.Name == "any" {
				return "yaml"
			}
			if elt.Name == "string" {
				return "map of strings"
			}
		}
	case *ast.SelectorExpr:
		if e.Sel.Name == "FieldLevels" {
			return "map of numbers"
		}
	case *ast.Ident:
		switch s := r.structs[e.Name]; {
		case e.Name == "Schema":
			return "yaml"
		case s != nil && !namesSecret(r.t, s) && readsKeys(s):
			return "object"
		}
	}
	_, value, _ := r.describe(expr)
	return value
}

// readsKeys reports whether a struct is read key by key, and not by a method.
func readsKeys(s *ast.TypeSpec) bool {
	for _, f := range s.Type.(*ast.StructType).Fields.List {
		if f.Tag != nil {
			return true
		}
	}
	return false
}

// namesSecret reports whether a struct is {secret: NAME}.
func namesSecret(t *testing.T, s *ast.TypeSpec) bool {
	fields := s.Type.(*ast.StructType).Fields.List
	if len(fields) != 1 {
		return false
	}
	key, _ := yamlKey(t, fields[0])
	return key == "secret"
}

func scalar(name string) string {
	switch name {
	case "string", "Decimal", "Class", "Role", "Pointer", "AgentsSee":
		return ""
	case "bool":
		return "true or false"
	case "int", "Count", "float64", "RiskLevel", "int64":
		return "number"
	case "Duration", "Span":
		return "duration"
	case "StatusRange":
		return "status or range"
	case "FieldLevels":
		return "map"
	case "Secret":
		return "secret"
	case "Value":
		return "string or secret"
	case "Node", "Schema":
		return "map"
	}
	return name
}

func yamlKey(t *testing.T, f *ast.Field) (key string, inline bool) {
	t.Helper()
	key, options, _ := strings.Cut(tagOf(t, f).Get("yaml"), ",")
	return key, options == "inline"
}

func tagOf(t *testing.T, f *ast.Field) reflect.StructTag {
	t.Helper()
	if f.Tag == nil {
		return ""
	}
	tag, err := strconv.Unquote(f.Tag.Value)
	if err != nil {
		t.Fatal(err)
	}
	return reflect.StructTag(tag)
}

// fieldOf returns a field by its name, ignoring case. The file's field Proxies is Config's TrustedProxies.
func fieldOf(s *ast.TypeSpec, name string) *ast.Field {
	if name == "Proxies" {
		name = "TrustedProxies"
	}
	for _, f := range s.Type.(*ast.StructType).Fields.List {
		for _, n := range f.Names {
			if strings.EqualFold(n.Name, name) {
				return f
			}
		}
	}
	return &ast.Field{}
}

// values matches the beginning of a list of values, which are written as the file has them.
var values = regexp.MustCompile(`^[a-z]+( \(the default\))?(,| or) `)

var link = regexp.MustCompile(` ?\(?\[(connector\.)?[A-Za-z.]+\]\)?`)

// comment is a field's comment as a phrase about its key: with keys instead of field names, and
// without the field's own name at its beginning.
func comment(doc *ast.CommentGroup, keys map[string]string, key string) string {
	text := strings.Join(strings.Fields(doc.Text()), " ")
	text = link.ReplaceAllString(text, "")
	for name, key := range keys {
		text = regexp.MustCompile(`\b`+name+`\b`).ReplaceAllLiteralString(text, "`"+key+"`")
	}

	first, rest, _ := strings.Cut(text, " ")
	if first != "`"+key+"`" && !strings.EqualFold(first, strings.ReplaceAll(key, "_", "")) {
		return text
	}
	rest = strings.TrimPrefix(strings.TrimPrefix(rest, "is "), "are ")
	if values.MatchString(rest) {
		return rest
	}
	return strings.ToUpper(rest[:1]) + rest[1:]
}
