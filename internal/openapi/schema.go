package openapi

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/gatehouse-dev/gatehouse"
)

// maxSchema limits the schemas within one body or one parameter, including repeated references.
const maxSchema = 5000

// copied lists the keywords that are copied unchanged to JSON Schema 2020-12.
var copied = []string{
	"type", "enum", "const", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "minLength",
	"maxLength", "minItems", "maxItems", "uniqueItems", "minProperties", "maxProperties", "minContains", "maxContains",
	"dependentRequired", "title", "format",
}

// The keywords whose value is one schema, a list of schemas, or a map of schemas.
var (
	holdsOne = []string{
		"additionalProperties",
		"propertyNames",
		"items",
		"contains",
		"not",
		"if",
		"then",
		"else",
		"unevaluatedProperties",
		"unevaluatedItems",
	}
	holdsList = []string{"allOf", "anyOf", "oneOf", "prefixItems"}
	holdsMap  = []string{"patternProperties", "dependentSchemas"}
	// conditional hold schemas that may name further properties of the same object.
	conditional = []string{"if", "then", "else", "dependentSchemas"}
	// siblings have an effect beside $ref in OpenAPI 3.1.
	siblings = slices.Concat(copied, holdsOne, holdsList, holdsMap, []string{"pattern", "properties", "required"})
)

// converter converts a schema of the document to one without references.
type converter struct {
	doc   *document
	left  int
	notes []string
	// inside has the references that are being resolved.
	inside []string
}

func (c *converter) note(format string, args ...any) {
	if n := fmt.Sprintf(format, args...); !slices.Contains(c.notes, n) {
		c.notes = append(c.notes, n)
	}
}

// errPassword: a schema, or a part of it that is not a property, is a password.
var errPassword = errors.New("it needs a password, which proposals would contain")

func needsPassword(name string) error {
	return fmt.Errorf("it needs the password %s, which proposals would contain", name)
}

// convert converts a schema. open is true if other schemas may add properties, as within allOf.
func (c *converter) convert(v any, open bool) (any, error) {
	if b, ok := v.(bool); ok {
		return b, nil
	}
	in, ok := v.(map[string]any)
	if !ok {
		return nil, errors.New("a schema must be a map")
	}
	if c.left--; c.left < 0 {
		return nil, fmt.Errorf("its schema has more than %d parts", maxSchema)
	}
	if in["format"] == "password" {
		return nil, errPassword
	}
	ref, isRef := in["$ref"].(string)
	if !isRef {
		return c.plain(in, open)
	}
	target, found := c.doc.at(ref).(map[string]any)
	if !found {
		return nil, fmt.Errorf("its schema refers to %s, which does not exist", ref)
	}
	if slices.Contains(c.inside, ref) {
		c.note("%s refers to itself; its parts are not checked there", ref)
		if kind, ok := target["type"]; ok {
			return map[string]any{"type": kind}, nil
		}
		return true, nil
	}
	beside := maps.Clone(in)
	maps.DeleteFunc(beside, func(name string, _ any) bool { return !slices.Contains(siblings, name) })
	if len(beside) == 0 || strings.HasPrefix(c.doc.version, "3.0") {
		c.inside = append(c.inside, ref)
		defer func() { c.inside = c.inside[:len(c.inside)-1] }()
		return c.convert(target, open)
	}
	more, _ := beside["allOf"].([]any)
	beside["allOf"] = append([]any{map[string]any{"$ref": ref}}, more...)
	return c.plain(beside, open)
}

func (c *converter) plain(in map[string]any, open bool) (any, error) {
	out := map[string]any{}
	for _, name := range copied {
		if v, ok := in[name]; ok {
			out[name] = v
		}
	}
	if s, ok := in["description"].(string); ok {
		out["description"] = oneLine(s, maxText)
	}
	if p, ok := in["pattern"].(string); ok {
		if _, err := regexp.Compile(p); err != nil {
			c.note("the pattern %q is not checked", p)
		} else {
			out["pattern"] = p
		}
	}
	composed := false
	for _, name := range holdsList {
		list, ok := in[name].([]any)
		if !ok || len(list) == 0 {
			continue
		}
		composed = composed || name != "prefixItems"
		all := make([]any, len(list))
		for i, e := range list {
			one, err := c.convert(e, name != "prefixItems")
			if err != nil {
				return nil, err
			}
			all[i] = one
		}
		out[name] = all
	}
	for _, name := range holdsOne {
		if v, ok := in[name]; ok {
			one, err := c.convert(v, name != "items" && name != "additionalProperties")
			if err != nil {
				return nil, err
			}
			out[name] = one
			composed = composed || slices.Contains(conditional, name)
		}
	}
	for _, name := range holdsMap {
		composed = composed || in[name] != nil && slices.Contains(conditional, name)
		if err := c.each(in[name], out, name); err != nil {
			return nil, err
		}
	}
	if err := c.properties(in, out); err != nil {
		return nil, err
	}
	_, closed := in["additionalProperties"]
	_, closedToo := in["unevaluatedProperties"]
	if !open && !closed && !closedToo && (out["properties"] != nil || composed && c.hasProperties(in, 0)) {
		// Properties that the document does not name were not reviewed and are not sent.
		if composed {
			out["unevaluatedProperties"] = false
		} else {
			out["additionalProperties"] = false
		}
	}
	if strings.HasPrefix(c.doc.version, "3.0") {
		older(in, out)
	}
	return out, nil
}

func (c *converter) each(v any, out map[string]any, name string) error {
	in, ok := v.(map[string]any)
	if !ok {
		return nil
	}
	all := make(map[string]any, len(in))
	for _, key := range slices.Sorted(maps.Keys(in)) {
		one, err := c.convert(in[key], slices.Contains(conditional, name))
		if err != nil {
			return err
		}
		all[key] = one
	}
	out[name] = all
	return nil
}

// properties converts the properties that may be sent: not those that are read-only, as declares finds them, which is
// not within anyOf or oneOf; and not those of which a part is a password, because proposals are stored.
func (c *converter) properties(in, out map[string]any) error {
	required := texts(in["required"])
	all, _ := in["properties"].(map[string]any)
	made := make(map[string]any, len(all))
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if c.doc.declares(all[name], "readOnly", true) {
			made[name] = false
			required = slices.DeleteFunc(required, func(r string) bool { return r == name })
			continue
		}
		one, err := c.convert(all[name], false)
		switch {
		case errors.Is(err, errPassword) && slices.Contains(required, name):
			return needsPassword(name)
		case errors.Is(err, errPassword):
			c.note("%s is a password, and was left out", name)
			one = false
		case err != nil:
			return err
		}
		made[name] = one
	}
	if len(made) > 0 {
		out["properties"] = made
	}
	if len(required) > 0 {
		out["required"] = required
	}
	return nil
}

// hasProperties reports whether a composed schema names properties anywhere.
func (c *converter) hasProperties(v any, depth int) bool {
	in := c.doc.resolve(v)
	if in["properties"] != nil {
		return true
	}
	for _, name := range holdsList {
		list, _ := in[name].([]any)
		for _, e := range list {
			if depth < 20 && c.hasProperties(e, depth+1) {
				return true
			}
		}
	}
	return false
}

// older converts to JSON Schema the keywords that exist only in OpenAPI 3.0.
func older(in, out map[string]any) {
	for limit, exclusive := range map[string]string{"minimum": "exclusiveMinimum", "maximum": "exclusiveMaximum"} {
		if is, ok := out[exclusive].(bool); ok {
			delete(out, exclusive)
			if value, has := out[limit]; is && has {
				out[exclusive] = value
				delete(out, limit)
			}
		}
	}
	if in["nullable"] == true {
		if kind, ok := out["type"].(string); ok {
			out["type"] = []any{kind, "null"}
		}
		if values, ok := out["enum"].([]any); ok && !slices.Contains(values, nil) {
			out["enum"] = append(slices.Clone(values), nil)
		}
	}
}

// maxText limits a text of the document or the reason for leaving out an operation, in characters.
const maxText = 160

// oneLine makes a text one line of at most limit characters.
func oneLine(s string, limit int) string { return cut(strings.Join(strings.Fields(s), " "), limit) }

func cut(s string, limit int) string {
	r := []rune(s)
	if len(r) > limit {
		return string(r[:limit]) + "…"
	}
	return string(r)
}

// moneyWords lists words in the names of properties with amounts.
var moneyWords = []string{
	"amount", "price", "total", "subtotal", "cost", "fee", "refund",
	"payment", "charge", "deposit",
}

// money returns the pointers to the amounts and to the first currency in a converted schema.
func money(v any, at string, depth int) (amounts []string, currency string) {
	in, _ := v.(map[string]any)
	if in == nil || depth > 8 {
		return nil, ""
	}
	all, _ := in["properties"].(map[string]any)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		here := at + gatehouse.JoinPointer(name)
		about, _ := all[name].(map[string]any)
		for _, word := range words(name) {
			switch {
			case about == nil:
			case slices.Contains(moneyWords, word) && isScalar(about["type"]):
				amounts = append(amounts, here)
			case word == "currency" && currency == "":
				currency = here
			}
		}
		more, c := money(about, here, depth+1)
		amounts = append(amounts, more...)
		if currency == "" {
			currency = c
		}
	}
	for _, name := range []string{"allOf", "anyOf", "oneOf"} {
		list, _ := in[name].([]any)
		for _, e := range list {
			more, c := money(e, at, depth+1)
			amounts = append(amounts, more...)
			if currency == "" {
				currency = c
			}
		}
	}
	slices.Sort(amounts)
	return slices.Compact(amounts), currency
}

func isScalar(kind any) bool {
	text, _ := json.Marshal(kind)
	return strings.Contains(string(text), "number") || strings.Contains(string(text), "integer") ||
		strings.Contains(string(text), "string")
}
