package mcp

import (
	"encoding/base64"
	"slices"
	"strings"
)

// The headers of protocol 2026-07-28 repeat parts of the body for
// intermediaries that do not read bodies. A server refuses a request whose
// headers and body differ.
const (
	versionHeader = "Mcp-Protocol-Version"
	methodHeader  = "Mcp-Method"
	nameHeader    = "Mcp-Name"
	mirrorPrefix  = "Mcp-Param-"
)

// metaVersion returns the protocol version in the _meta of a frame's params, "" for none.
func metaVersion(f *frame) string {
	return text(memberOf(memberOf(f.params, "_meta"), "io.modelcontextprotocol/protocolVersion"))
}

// headersOf returns the headers that repeat a frame's method, the name, URI or
// task id in its params, and the arguments that the tool's schema mirrors into
// headers.
func (r *remote) headersOf(f *frame) map[string]string {
	out := map[string]string{methodHeader: f.method}
	subject := map[string]string{
		"tools/call": "name", "prompts/get": "name", "resources/read": "uri",
		"tasks/get": "taskId", "tasks/update": "taskId", "tasks/cancel": "taskId",
	}[f.method]
	if value := text(memberOf(f.params, subject)); subject != "" && value != "" {
		out[nameHeader] = headerText(value)
	}
	if f.method != "tools/call" {
		return out
	}
	arguments := memberOf(f.params, "arguments")
	for _, m := range r.mirrored[text(memberOf(f.params, "name"))] {
		value := arguments
		for _, name := range m.path {
			value = memberOf(value, name)
		}
		if encoded, ok := headerValue(value); ok {
			out[mirrorPrefix+m.header] = encoded
		}
	}
	return out
}

// mirroredArgument is an argument that is repeated in a header, because the tool's input
// schema has x-mcp-header for it.
type mirroredArgument struct {
	path   []string
	header string
}

// mirrors reads the mirrored arguments from the schemas of a tools/list result, by tool.
func mirrors(result []byte) map[string][]mirroredArgument {
	out := map[string][]mirroredArgument{}
	tools := memberOf(result, "tools")
	if len(tools) == 0 || tools[0] != '[' {
		return out
	}
	for _, tool := range elements(tools) {
		out[text(memberOf(tool, "name"))] = mirrorsOf(memberOf(tool, "inputSchema"))
	}
	return out
}

// mirrorsOf reads the mirrored arguments from a tool's input schema. It leaves out what the protocol does not allow:
// names that are not tokens, and names that several arguments share, ignoring case.
func mirrorsOf(schema []byte) []mirroredArgument {
	all := declaredMirrors(schema, nil, nil)
	times := map[string]int{}
	for _, m := range all {
		times[strings.ToLower(m.header)]++
	}
	return slices.DeleteFunc(all, func(m mirroredArgument) bool { return times[strings.ToLower(m.header)] > 1 })
}

func declaredMirrors(schema []byte, path []string, out []mirroredArgument) []mirroredArgument {
	properties := memberOf(schema, "properties")
	if len(properties) == 0 || properties[0] != '{' {
		return out
	}
	for _, m := range members(properties) {
		here := append(path[:len(path):len(path)], m.name)
		if header := text(memberOf(m.value, "x-mcp-header")); isToken(header) {
			out = append(out, mirroredArgument{here, header})
		}
		out = declaredMirrors(m.value, here, out)
	}
	return out
}

// isToken reports whether s is a token of RFC 9110.
func isToken(s string) bool {
	return s != "" && strings.IndexFunc(s, func(c rune) bool {
		return (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') &&
			!strings.ContainsRune("!#$%&'*+-.^_`|~", c)
	}) < 0
}

// headerValue encodes a string, a boolean or an integer as a header's value.
// It reports whether the value is one of these.
func headerValue(value []byte) (string, bool) {
	if len(value) == 0 || strings.IndexByte("{[n", value[0]) >= 0 {
		return "", false
	}
	if value[0] != '"' {
		return string(value), !strings.ContainsAny(string(value), ".eE") || value[0] == 't' || value[0] == 'f'
	}
	return headerText(text(value)), true
}

// headerText encodes a text as a header's value: in base64 if a header cannot hold it.
func headerText(s string) string {
	odd := strings.IndexFunc(s, func(c rune) bool { return c < ' ' || c > '~' }) >= 0
	if odd || s == "" || strings.TrimSpace(s) != s || strings.HasPrefix(s, "=?base64?") {
		return "=?base64?" + base64.StdEncoding.EncodeToString([]byte(s)) + "?="
	}
	return s
}
