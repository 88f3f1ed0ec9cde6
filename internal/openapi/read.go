package openapi

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/url"
	"regexp"
	"strconv"
	"strings"

	"github.com/getkin/kin-openapi/openapi3"
	"go.yaml.in/yaml/v4"

	"github.com/gatehouse-dev/gatehouse"
)

// The limits of a document: bytes, values (with those that aliases repeat), and depth. They also bound the
// time of the validation, because the library (v0.152) observes no deadline.
const (
	MaxBytes  = 5 << 20
	maxValues = 500_000
	maxDepth  = 100
)

// document is a document as a tree of map[string]any, []any, string, json.Number, bool
// and nil.
type document struct {
	root    map[string]any
	version string // such as 3.1.0
	sha256  string
	// credentials has the parameters that the security schemes name, as idOf returns them.
	credentials map[string]bool
}

// read parses and validates a document.
func read(src []byte) (*document, error) {
	if len(src) > MaxBytes {
		return nil, fmt.Errorf("is larger than %d MiB", MaxBytes>>20)
	}
	sum := sha256.Sum256(src)
	d := &document{sha256: hex.EncodeToString(sum[:])}
	tree, err := parse(src)
	if err != nil {
		return nil, err
	}
	root, ok := tree.(map[string]any)
	switch {
	case !ok:
		return nil, errors.New("is not a map, which an OpenAPI document must be")
	case root["swagger"] != nil:
		return nil, errors.New("is Swagger 2.0; convert it to OpenAPI 3 first")
	}
	d.root = root
	if d.version, ok = root["openapi"].(string); !ok || !strings.HasPrefix(d.version, "3.") {
		return nil, errors.New("is not an OpenAPI 3 document: its member openapi must be a version such as 3.1.0")
	}
	if err := localOnly(root); err != nil {
		return nil, err
	}
	d.credentials = d.schemes()
	return d, validate(root)
}

// idOf identifies a parameter by its place and name. Names of headers do not distinguish case.
func idOf(in, name any) string {
	id := fmt.Sprint(in, " ", name)
	if in == "header" {
		id = strings.ToLower(id)
	}
	return id
}

// schemes returns the parameters that the security schemes name.
func (d *document) schemes() map[string]bool {
	components, _ := d.root["components"].(map[string]any)
	all, _ := components["securitySchemes"].(map[string]any)
	out := map[string]bool{}
	for _, v := range all {
		if s := d.resolve(v); s["type"] == "apiKey" {
			out[idOf(s["in"], s["name"])] = true
		}
	}
	return out
}

func parse(src []byte) (any, error) {
	if trimmed := bytes.TrimSpace(src); len(trimmed) > 0 && trimmed[0] == '{' {
		if err := gatehouse.CheckJSONWithin(trimmed, maxDepth); err == nil {
			decoder := json.NewDecoder(bytes.NewReader(trimmed))
			decoder.UseNumber()
			var tree any
			if err := decoder.Decode(&tree); err != nil {
				return nil, err
			}
			if count(tree) > maxValues {
				return nil, fmt.Errorf("has more than %d values", maxValues)
			}
			return tree, nil
		}
	}
	if len(bytes.TrimSpace(src)) == 0 {
		return nil, errors.New("is empty")
	}
	var node yaml.Node
	if err := yaml.Load(src, &node); err != nil {
		if at, ok := errors.AsType[*yaml.LoadError](err); ok {
			err = fmt.Errorf("line %d, column %d: %s", at.Mark.Line, at.Mark.Column, at.Message)
		}
		return nil, fmt.Errorf("is neither JSON nor YAML: %s", oneLine(err.Error(), maxError))
	}
	p := &reader{left: maxValues}
	return p.value(&node, 0)
}

// count counts the values of a tree.
func count(v any) int {
	n := 1
	switch v := v.(type) {
	case map[string]any:
		for _, m := range v {
			n += count(m)
		}
	case []any:
		for _, e := range v {
			n += count(e)
		}
	}
	return n
}

// maxError limits an error of a parser, in characters.
const maxError = 300

// reader converts YAML nodes to a tree.
type reader struct{ left int }

func (p *reader) value(n *yaml.Node, depth int) (any, error) {
	if p.left--; p.left < 0 {
		return nil, fmt.Errorf("has more than %d values, with those that aliases repeat", maxValues)
	}
	if depth > maxDepth {
		return nil, fmt.Errorf("line %d: is nested deeper than %d", n.Line, maxDepth)
	}
	switch n.Kind {
	case yaml.DocumentNode:
		if len(n.Content) == 0 {
			return nil, errors.New("is empty")
		}
		return p.value(n.Content[0], depth)
	case yaml.AliasNode:
		return p.value(n.Alias, depth+1)
	case yaml.SequenceNode:
		out := make([]any, 0, len(n.Content))
		for _, e := range n.Content {
			v, err := p.value(e, depth+1)
			if err != nil {
				return nil, err
			}
			out = append(out, v)
		}
		return out, nil
	case yaml.MappingNode:
		out := make(map[string]any, len(n.Content)/2)
		for i := 0; i+1 < len(n.Content); i += 2 {
			key := n.Content[i]
			if key.Kind != yaml.ScalarNode || key.ShortTag() == "!!merge" {
				return nil, fmt.Errorf("line %d: a key must be a plain string, and merge keys (<<) are not supported", key.Line)
			}
			if _, twice := out[key.Value]; twice {
				return nil, fmt.Errorf("line %d: the key %s occurs twice", key.Line, gatehouse.Quote(key.Value))
			}
			v, err := p.value(n.Content[i+1], depth+1)
			if err != nil {
				return nil, err
			}
			out[key.Value] = v
		}
		return out, nil
	case yaml.ScalarNode:
		return scalar(n)
	}
	return nil, errors.New("is empty")
}

func scalar(n *yaml.Node) (any, error) {
	switch n.ShortTag() {
	case "!!null":
		return nil, nil
	case "!!bool":
		return strings.EqualFold(n.Value, "true"), nil
	case "!!int", "!!float":
		if json.Valid([]byte(n.Value)) {
			return json.Number(n.Value), nil
		}
		var f float64
		if err := n.Load(&f); err != nil || math.IsInf(f, 0) || math.IsNaN(f) {
			return nil, fmt.Errorf("line %d: %s is not a JSON number", n.Line, gatehouse.Quote(n.Value))
		}
		return json.Number(strconv.FormatFloat(f, 'g', -1, 64)), nil
	}
	return n.Value, nil
}

// localOnly refuses references to other documents.
func localOnly(v any) error {
	switch v := v.(type) {
	case map[string]any:
		if ref, ok := v["$ref"].(string); ok && !strings.HasPrefix(ref, "#") {
			return fmt.Errorf("refers to another document, %s, which is not read; bundle it into one first",
				gatehouse.Quote(ref))
		}
		for _, m := range v {
			if err := localOnly(m); err != nil {
				return err
			}
		}
	case []any:
		for _, e := range v {
			if err := localOnly(e); err != nil {
				return err
			}
		}
	}
	return nil
}

// validate checks the document against the specification. The library gets the decoded tree, so
// that it parses no YAML. A panic in it counts as an invalid document.
func validate(root map[string]any) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = errors.New("is not a valid OpenAPI document")
		}
	}()
	text, err := json.Marshal(root)
	if err != nil {
		return err
	}
	loader := openapi3.NewLoader()
	loader.ReadFromURIFunc = func(*openapi3.Loader, *url.URL) ([]byte, error) {
		return nil, errors.New("other documents are not read")
	}
	doc, err := loader.LoadFromData(text)
	if err == nil {
		err = doc.Validate(loader.Context, openapi3.DisableExamplesValidation(), openapi3.DisableSchemaDefaultsValidation(),
			openapi3.DisableSchemaPatternValidation(), openapi3.AllowExtraSiblingFields("description", "summary"))
	}
	if err != nil {
		return fmt.Errorf("is not valid: %s", plain(oneLine(err.Error(), maxError)))
	}
	return nil
}

var (
	wrongForm = regexp.MustCompile(`json: cannot unmarshal (\w+) into (?:field )?(\S+) of type `)
	nowhere   = regexp.MustCompile(`^failed to resolve .* in fragment in URI: (".*?")`)
)

// plain removes the names of decoders and Go types from the library's message.
func plain(message string) string {
	if m := nowhere.FindStringSubmatch(message); m != nil {
		return "it refers to " + m[1] + ", which does not exist"
	}
	m := wrongForm.FindStringSubmatch(message)
	if m == nil {
		return message
	}
	given := map[string]string{"string": "text", "bool": "true or false", "object": "a map", "array": "a list"}
	return m[2] + " cannot be " + cmp.Or(given[m[1]], "a "+m[1])
}

// resolve follows references within the document; nil if they do not resolve.
func (d *document) resolve(v any) map[string]any {
	for range 20 {
		out, _ := v.(map[string]any)
		ref, ok := out["$ref"].(string)
		if !ok {
			return out
		}
		v = d.at(ref)
	}
	return nil
}

// maxParts limits the schemas in which declares looks for a keyword.
const maxParts = 1000

// declares reports whether a schema, or a schema that it refers to or is composed of with allOf, sets a keyword to
// the value. OpenAPI 3.0 needs allOf to add keywords to a reference.
func (d *document) declares(v any, keyword string, value any) bool {
	parts := []any{v}
	for i := 0; i < len(parts) && i < maxParts; i++ {
		in, _ := parts[i].(map[string]any)
		if in[keyword] == value {
			return true
		}
		if ref, ok := in["$ref"].(string); ok {
			parts = append(parts, d.at(ref))
		}
		all, _ := in["allOf"].([]any)
		parts = append(parts, all[:min(len(all), maxParts)]...)
	}
	return false
}

// at returns the value that a reference such as #/components/schemas/Deal points to (RFC 6901).
func (d *document) at(ref string) any {
	var v any = d.root
	fragment, err := url.PathUnescape(strings.TrimPrefix(ref, "#"))
	if err != nil {
		return nil
	}
	for _, step := range gatehouse.SplitPointer(fragment) {
		switch in := v.(type) {
		case map[string]any:
			v = in[step]
		case []any:
			i, err := strconv.Atoi(step)
			if err != nil || i < 0 || i >= len(in) {
				return nil
			}
			v = in[i]
		default:
			return nil
		}
	}
	return v
}

func texts(v any) []string {
	list, _ := v.([]any)
	var out []string
	for _, e := range list {
		if s, ok := e.(string); ok {
			out = append(out, s)
		}
	}
	return out
}
