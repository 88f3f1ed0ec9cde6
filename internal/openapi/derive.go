package openapi

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/connector"
	httpconn "github.com/gatehouse-dev/gatehouse/connector/http"
)

// API is the result of deriving a document.
type API struct {
	Title, Version, SHA256 string
	Operations             map[string]Operation
	// LeftOut maps each skipped operation to the reason.
	LeftOut map[string]string
}

// Operation is a derived operation.
type Operation struct {
	// Entry is the operation as it is written to a file, without the key imported.
	Entry map[string]any
	// Floor is its risk level.
	Floor gatehouse.RiskLevel
	// Class is its idempotency class.
	Class connector.Class
	// Why has the reasons for class and level. Money and Currency are JSON pointers into the
	// proposed change.
	Why, Money []string
	Currency   string
	Digest     string
}

// risky lists the words that raise an operation to at least L4.
var risky = []string{
	"delete", "purge", "refund", "pay", "transfer", "charge", "payout", "grant", "revoke", "role", "permission", "key",
	"secret", "webhook", "bulk", "all",
}

// Derive derives the operations of a document. The error is for the person who imports it, and
// begins with a verb whose subject is the document.
func Derive(ctx context.Context, src []byte) (*API, error) {
	d, err := read(src)
	if err != nil {
		return nil, err
	}
	info, _ := d.root["info"].(map[string]any)
	title, _ := info["title"].(string)
	version, _ := info["version"].(string)
	api := &API{
		Title: oneLine(title, maxText), Version: oneLine(version, maxText), SHA256: d.sha256,
		Operations: map[string]Operation{}, LeftOut: map[string]string{},
	}
	paths, _ := d.root["paths"].(map[string]any)
	for _, path := range slices.Sorted(maps.Keys(paths)) {
		item := d.resolve(paths[path])
		for _, method := range []string{"post", "put", "patch", "delete"} {
			if ctx.Err() != nil {
				return nil, ctx.Err()
			}
			op, ok := item[method].(map[string]any)
			if !ok {
				continue
			}
			name := nameOf(op, method, path)
			_, twice := api.Operations[name]
			if _, twiceToo := api.LeftOut[name]; twice || twiceToo {
				return nil, fmt.Errorf("has two operations that are called %s", gatehouse.Quote(name))
			}
			b := &builder{doc: d, name: name, method: strings.ToUpper(method), path: path, item: item, op: op}
			derived, err := b.build(ctx)
			if err != nil {
				api.LeftOut[name] = oneLine(err.Error(), maxText)
				continue
			}
			api.Operations[name] = *derived
		}
	}
	if len(api.Operations) == 0 {
		why := "has no operation that writes"
		for _, name := range slices.Sorted(maps.Keys(api.LeftOut)) {
			why += "; " + name + ": " + api.LeftOut[name]
		}
		return nil, fmt.Errorf("%s", why)
	}
	return api, nil
}

var notName = regexp.MustCompile(`[^A-Za-z0-9._-]+`)

// nameOf returns the operationId, or else method and path.
func nameOf(op map[string]any, method, path string) string {
	id, _ := op["operationId"].(string)
	if id == "" {
		id = method + "_" + path
	}
	name := strings.Trim(notName.ReplaceAllString(id, "_"), "._-")
	if len(name) > 100 {
		name = name[:100]
	}
	if !gatehouse.ValidName(name) {
		name = method
	}
	return name
}

// words splits a name such as createRefunds or /v1/api-keys into lower-case words, and adds each
// plural also without its s.
func words(s string) []string {
	var out []string
	add := func(w string) {
		if w == "" {
			return
		}
		w = strings.ToLower(w)
		out = append(out, w)
		if one := strings.TrimSuffix(w, "s"); one != w {
			out = append(out, one)
		}
	}
	start := 0
	r := []rune(s)
	for i, c := range r {
		switch {
		case !unicode.IsLetter(c) && !unicode.IsDigit(c):
			add(string(r[start:i]))
			start = i + 1
		case unicode.IsUpper(c) && i > start && (!unicode.IsUpper(r[i-1]) || i+1 < len(r) && unicode.IsLower(r[i+1])):
			add(string(r[start:i]))
			start = i
		}
	}
	add(string(r[start:]))
	return out
}

// builder derives one operation.
type builder struct {
	doc                *document
	name, method, path string
	item, op           map[string]any

	entry    map[string]any
	floor    gatehouse.RiskLevel
	why      []string
	class    connector.Class
	envelope map[string]any // schemas of the parameters, nil for none
	headers  map[string]any
	query    []string
	hasRef   bool // whether the path identifies one object
}

func (b *builder) raise(level gatehouse.RiskLevel, format string, args ...any) {
	b.floor = max(b.floor, level)
	if why := fmt.Sprintf(format, args...); !slices.Contains(b.why, why) {
		b.why = append(b.why, why)
	}
}

func (b *builder) build(ctx context.Context) (*Operation, error) {
	b.entry, b.class = map[string]any{"method": b.method}, connector.ClassC
	if err := b.parameters(); err != nil {
		return nil, err
	}
	schema, notes, err := b.body()
	if err != nil {
		return nil, err
	}
	b.risk()
	b.answers()
	amounts, currency := money(schema, "", 0)
	if len(amounts) > 0 || currency != "" {
		b.raise(
			gatehouse.L3,
			"money: %s",
			strings.TrimSpace(strings.Join(append(slices.Clone(amounts), currency), " ")),
		)
	}
	b.why = append(b.why, notes...)
	b.floor = max(b.floor, connector.UndeclaredFloor(b.name, b.method == "DELETE", false))
	b.entry["class"], b.entry["floor"], b.entry["schema"] = string(b.class), int(b.floor), schema
	if b.headers != nil {
		b.entry["headers"] = b.headers
	}
	text, err := json.Marshal(b.entry)
	if err != nil {
		return nil, err
	}
	canonical, err := gatehouse.Canonicalize(text)
	if err != nil {
		return nil, fmt.Errorf("its schema %w", err)
	}
	out := &Operation{
		Entry: b.entry, Floor: b.floor, Class: b.class, Why: b.why, Money: amounts, Currency: currency,
		Digest: string(gatehouse.NewDigest(canonical)),
	}
	return out, b.checkConnector(ctx)
}

// checkConnector checks that the http connector accepts the operation.
func (b *builder) checkConnector(ctx context.Context) error {
	op, err := Decode(b.entry)
	if err != nil {
		return err
	}
	_, err = httpconn.New(ctx, httpconn.Config{
		BaseURL: "https://import.example", Operations: map[string]httpconn.Operation{b.name: op},
	}, nil)
	if err != nil {
		return fmt.Errorf("%s", strings.TrimPrefix(err.Error(), "operations."+b.name+"."))
	}
	return nil
}

var pathPlace = regexp.MustCompile(`\{([^{}]*)\}`)

// parameters derives the path, and the idempotency class from the headers.
func (b *builder) parameters() error {
	all := map[string]map[string]any{}
	for _, list := range []any{b.item["parameters"], b.op["parameters"]} {
		elements, _ := list.([]any)
		for _, e := range elements {
			p := b.doc.resolve(e)
			in, _ := p["in"].(string)
			name, _ := p["name"].(string)
			all[in+" "+name] = p
		}
	}
	if err := b.pathOf(all); err != nil {
		return err
	}
	keys := slices.Sorted(maps.Keys(all))
	for _, key := range keys {
		if name, ok := strings.CutPrefix(key, "header "); ok && keyHeader.MatchString(name) {
			b.class = connector.ClassA
			b.entry["idempotency_header"] = name
			b.why = append(b.why, "class A: header "+name)
		}
	}
	for _, key := range keys {
		in, name, _ := strings.Cut(key, " ")
		required := all[key]["required"] == true
		var err error
		switch {
		case in == "header":
			err = b.header(name, required, all[key])
		case in == "query" && required:
			err = b.place(name, all[key])
			b.query = append(b.query, escapeQuery(name)+"={proposed_change."+name+"}")
		case in == "cookie" && required:
			err = fmt.Errorf("it needs the cookie %s", name)
		}
		if err != nil {
			return err
		}
	}
	if len(b.query) > 0 {
		b.entry["path"] = b.entry["path"].(string) + "?" + strings.Join(b.query, "&")
	}
	return nil
}

func escapeQuery(name string) string {
	return strings.NewReplacer(
		"%", "%25", "+", "%2B", "[", "%5B", "]", "%5D", " ", "%20", "&", "%26", "=", "%3D",
	).Replace(name)
}

// pathOf derives the path: its last parameter is the entity, and the others are members of the
// change.
func (b *builder) pathOf(all map[string]map[string]any) error {
	if strings.ContainsAny(b.path, "?#\\") {
		return fmt.Errorf("its path has a query, a fragment or a backslash")
	}
	places := pathPlace.FindAllStringSubmatchIndex(b.path, -1)
	var out strings.Builder
	at := 0
	for i, m := range places {
		out.WriteString(b.path[at:m[0]])
		name := b.path[m[2]:m[3]]
		about := all["path "+name]
		if i == len(places)-1 {
			if b.isSecret(about) {
				return needsPassword(name)
			}
			out.WriteString("{entity_ref}")
		} else {
			if err := b.place(name, about); err != nil {
				return err
			}
			out.WriteString("{proposed_change." + name + "}")
		}
		at = m[1]
	}
	out.WriteString(b.path[at:])
	b.entry["path"], b.hasRef = out.String(), len(places) > 0
	return nil
}

// place adds a parameter to the proposed change, beside body.
func (b *builder) place(name string, about map[string]any) error {
	if name == "" || name == "body" || strings.ContainsAny(name, `{}"\`) {
		return fmt.Errorf("its parameter %s has an unsupported name", gatehouse.Quote(name))
	}
	if b.isSecret(about) {
		return needsPassword(name)
	}
	schema := any(map[string]any{"type": []any{"string", "number", "boolean"}})
	if about["schema"] != nil {
		c := &converter{doc: b.doc, left: maxSchema}
		made, err := c.convert(about["schema"], false)
		if err != nil {
			return err
		}
		if in, ok := made.(map[string]any); ok && isScalar(in["type"]) || ok && in["type"] == "boolean" {
			schema = made
		}
	}
	if b.envelope == nil {
		b.envelope = map[string]any{}
	}
	if b.envelope[name] != nil {
		return fmt.Errorf("it has two parameters that are called %s", gatehouse.Quote(name))
	}
	b.envelope[name] = schema
	return nil
}

// isSecret reports whether a parameter is a password, or a credential that a security scheme names.
func (b *builder) isSecret(about map[string]any) bool {
	schemas := []any{about["schema"]}
	content, _ := about["content"].(map[string]any) // instead of schema
	for _, v := range content {
		media, _ := v.(map[string]any)
		schemas = append(schemas, media["schema"])
	}
	return b.doc.credentials[idOf(about["in"], about["name"])] || slices.ContainsFunc(schemas, func(schema any) bool {
		c := &converter{doc: b.doc, left: maxSchema}
		_, err := c.convert(schema, false)
		return errors.Is(err, errPassword)
	})
}

var keyHeader = regexp.MustCompile(`(?i)^(x-)?([a-z]+-)?idempoten(cy|t)(-?key)?$`)

// credentialHeader matches the names of headers that are credentials even if no security scheme names them.
var credentialHeader = regexp.MustCompile(
	`(?i)api[_-]?key|secret|passw|credential|authorization|(access|api|auth)[_-]?token`)

func (b *builder) header(name string, required bool, about map[string]any) error {
	switch folded := strings.ToLower(name); {
	case folded == "accept" || folded == "content-type" || folded == "authorization":
		return nil // OpenAPI ignores them too
	case keyHeader.MatchString(name):
		return nil // see parameters
	case folded == "if-match" || folded == "if-unmodified-since":
		if b.class == connector.ClassA && !required {
			return nil
		}
		if b.class == connector.ClassC {
			b.class = connector.ClassB
			b.why = append(b.why, "class B: header "+name)
		}
		b.entry["conditional"] = map[string]any{"header": name, "from": "version"}
	case required && (b.doc.credentials[idOf("header", name)] || credentialHeader.MatchString(name)):
		b.why = append(b.why, "header "+name+" is a credential, which the connector must send, and was left out")
	case required:
		if err := b.place(name, about); err != nil {
			return err
		}
		if b.headers == nil {
			b.headers = map[string]any{}
		}
		b.headers[name] = "{proposed_change." + name + "}"
	}
	return nil
}

// body derives the schema of the proposed change and how it is sent.
func (b *builder) body() (schema any, notes []string, err error) {
	body := b.doc.resolve(b.op["requestBody"])
	content, _ := body["content"].(map[string]any)
	var media string
	var about map[string]any
	for _, m := range slices.Sorted(maps.Keys(content)) {
		kind, _, _ := strings.Cut(strings.ToLower(m), ";")
		kind = strings.TrimSpace(kind)
		if media == "" && strings.HasSuffix(kind, "+json") || media != "application/json" && kind == "application/json" {
			media = kind
			about, _ = content[m].(map[string]any)
		}
	}
	switch {
	case len(content) > 0 && media == "":
		return nil, nil, fmt.Errorf("its body is %s, and only JSON can be sent", slices.Sorted(maps.Keys(content))[0])
	case media == "":
		return b.noBody(), nil, nil
	case media != "application/json":
		if b.headers == nil {
			b.headers = map[string]any{}
		}
		b.headers["Content-Type"] = media
	}
	c := &converter{doc: b.doc, left: maxSchema}
	made := any(map[string]any{})
	if about["schema"] != nil {
		if made, err = c.convert(about["schema"], false); err != nil {
			return nil, nil, err
		}
	}
	in, _ := made.(map[string]any)
	if in == nil {
		in = map[string]any{}
	}
	stated := kinds(in)
	array := strings.Contains(stated, `"array"`)
	if array {
		b.raise(gatehouse.L5, "bulk: the body is an array")
	}
	object := !array && (stated == "" || strings.Contains(stated, `"object"`))
	if object && (b.envelope == nil || in["type"] == nil) {
		in["type"] = "object" // without a type, it could be an array
	}
	if object && b.envelope == nil {
		if b.method == "DELETE" {
			b.entry["body"] = `"{proposed_change}"`
		}
		return in, c.notes, nil
	}
	b.entry["body"] = `"{proposed_change.body}"`
	return b.wrapped(in), c.notes, nil
}

// kinds returns the types, as JSON, that a converted schema states itself or within allOf; "" for none. Without a type,
// items state an array.
func kinds(v any) string {
	in, _ := v.(map[string]any)
	if in["type"] != nil {
		text, _ := json.Marshal(in["type"])
		return string(text)
	}
	var stated string
	if in["items"] != nil || in["prefixItems"] != nil {
		stated = `"array"`
	}
	parts, _ := in["allOf"].([]any)
	for _, part := range parts {
		stated += kinds(part)
	}
	return stated
}

func (b *builder) noBody() any {
	switch {
	case b.envelope != nil:
		b.entry["body"] = "none"
		return b.wrapped(nil)
	case b.method == "DELETE":
		return map[string]any{
			"type": "object", "additionalProperties": false,
			"properties": map[string]any{"deleted": map[string]any{"const": true}},
		}
	}
	b.entry["body"] = "none"
	return map[string]any{"type": "object", "maxProperties": json.Number("0")}
}

// wrapped returns the schema of a change with parameters and a body beside them.
func (b *builder) wrapped(body map[string]any) any {
	properties := map[string]any{}
	maps.Copy(properties, b.envelope)
	if body != nil {
		properties["body"] = body
	}
	required := []any{}
	for _, name := range slices.Sorted(maps.Keys(properties)) {
		required = append(required, name)
	}
	return map[string]any{
		"type":                 "object",
		"additionalProperties": false,
		"properties":           properties,
		"required":             required,
	}
}

// risk derives the level from method, path and words.
func (b *builder) risk() {
	base := gatehouse.L3
	if b.method == "DELETE" {
		base = gatehouse.L4
	}
	b.raise(base, "method %s", b.method)
	if (b.method == "DELETE" || b.method == "PUT") && !b.hasRef {
		b.raise(gatehouse.L5, "bulk: %s without a parameter in the path", b.method)
	}
	id, _ := b.op["operationId"].(string)
	said := append(words(id), words(pathPlace.ReplaceAllString(b.path, "/"))...)
	for _, tag := range texts(b.op["tags"]) {
		said = append(said, words(tag)...)
	}
	for _, w := range risky {
		if slices.Contains(said, w) {
			b.raise(gatehouse.L4, "word %s", w)
		}
	}
	if n, ok := b.op["x-gatehouse-risk"].(json.Number); ok {
		if level, err := n.Int64(); err == nil && level >= 1 && level <= 5 && gatehouse.RiskLevel(level) > b.floor {
			b.raise(gatehouse.RiskLevel(level), "x-gatehouse-risk %d", level)
		}
	}
}

// answers derives from the responses: a condition, an id, and how to read the target's state.
func (b *builder) answers() {
	responses, _ := b.op["responses"].(map[string]any)
	if responses["412"] != nil && b.class == connector.ClassC {
		b.class = connector.ClassB
		b.entry["conditional"] = map[string]any{"header": "If-Match", "from": "version"}
		b.why = append(b.why, "class B: answer 412")
	}
	for _, status := range slices.Sorted(maps.Keys(responses)) {
		if !strings.HasPrefix(status, "2") {
			continue
		}
		if properties := b.answered(responses[status]); properties["id"] != nil {
			b.entry["external_id"] = "/id"
		}
	}
	get, ok := b.item["get"].(map[string]any)
	if !ok || !strings.HasSuffix(b.path, "}") || len(b.query) > 0 {
		return
	}
	for _, list := range []any{b.item["parameters"], get["parameters"]} {
		elements, _ := list.([]any)
		for _, e := range elements {
			if p := b.doc.resolve(e); p["in"] != "path" && p["required"] == true {
				return
			}
		}
	}
	answers, _ := get["responses"].(map[string]any)
	if b.answered(answers["200"]) == nil {
		return
	}
	check := map[string]any{"path": b.entry["path"]}
	answer := b.doc.resolve(answers["200"])
	headers, _ := answer["headers"].(map[string]any)
	for name := range headers {
		if strings.EqualFold(name, "etag") {
			check["version"] = "header ETag"
		}
	}
	if c, ok := b.entry["conditional"].(map[string]any); ok {
		check["version"] = "header ETag"
		if strings.EqualFold(c["header"].(string), "If-Unmodified-Since") {
			check["version"] = "header Last-Modified"
		}
	}
	b.entry["check"] = check
}

// answered returns the properties of a JSON response; nil for none.
func (b *builder) answered(v any) map[string]any {
	answer := b.doc.resolve(v)
	content, _ := answer["content"].(map[string]any)
	for _, m := range slices.Sorted(maps.Keys(content)) {
		if !strings.Contains(strings.ToLower(m), "json") {
			continue
		}
		about, _ := content[m].(map[string]any)
		schema := b.doc.resolve(about["schema"])
		properties, _ := schema["properties"].(map[string]any)
		if properties == nil && schema["type"] == "object" {
			properties = map[string]any{}
		}
		return properties
	}
	return nil
}
