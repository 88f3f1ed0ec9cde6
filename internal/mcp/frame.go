package mcp

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode"

	"github.com/gatehouse-dev/gatehouse"
)

// The bounds of frames, in bytes.
const (
	maxClientFrame = 4 << 20
	maxServerFrame = 16 << 20
	maxID          = 256
	maxMethod      = 128
	// clientDepth lets a call's arguments have the depth that an action may have.
	clientDepth = gatehouse.MaxDepth + 2
	serverDepth = 512
)

// The codes of JSON-RPC 2.0.
const (
	codeParse          = -32700
	codeInvalidRequest = -32600
	codeNoMethod       = -32601
	codeInvalidParams  = -32602
	codeInternal       = -32603
)

// frame is one JSON-RPC message. Except for method, its fields are raw bytes, nil
// for an absent member.
type frame struct {
	raw             []byte
	id              []byte
	method          string
	params          []byte
	result, failure []byte
}

func (f *frame) isRequest() bool  { return f.method != "" && f.id != nil }
func (f *frame) isResponse() bool { return f.method == "" }

// frameError is the error of a refused frame, with the code of the answer. id is the
// raw id, nil if it was not read or is not valid; request says that the frame, as far as it
// was read, may be a request.
type frameError struct {
	code    int
	detail  string
	id      []byte
	request bool
}

func (e *frameError) Error() string { return e.detail }

// needsAnswer reports whether the frame may be a request, which it always may be if it cannot be parsed.
func (e *frameError) needsAnswer() bool { return e.request || e.code == codeParse }

// parseFrame parses a line without its end. It refuses what two parsers
// could read differently: duplicate members, names of the frame's own members in
// another case, unknown members of the frame, invalid UTF-8, and carriage
// returns, which some readers take for the end of a line.
func parseFrame(raw []byte, depth int) (*frame, error) {
	if bytes.IndexByte(raw, '\r') >= 0 {
		return nil, &frameError{code: codeParse, detail: "the frame has a carriage return in it"}
	}
	if err := gatehouse.CheckJSONWithin(raw, depth); err != nil {
		return nil, &frameError{code: codeParse, detail: "the frame is not valid JSON: " + err.Error()}
	}
	if trimmed := bytes.TrimLeft(raw, " \t\n"); trimmed[0] != '{' {
		return nil, &frameError{
			code: codeInvalidRequest, detail: "the frame is not an object: batches are not supported", request: true,
		}
	}
	f := &frame{raw: raw}
	var version, method []byte
	var unknown []string
	for _, m := range members(raw) {
		switch m.name {
		case "jsonrpc":
			version = m.value
		case "id":
			f.id = m.value
		case "method":
			method, f.method = m.value, text(m.value)
		case "params":
			f.params = m.value
		case "result":
			f.result = m.value
		case "error":
			f.failure = m.value
		default:
			unknown = append(unknown, m.name)
		}
	}
	if wrong := f.checkID(); wrong != "" {
		return nil, &frameError{code: codeInvalidRequest, detail: wrong, request: method != nil}
	}
	if method != nil && (f.method == "" || len(f.method) > maxMethod) {
		detail := fmt.Sprintf("method must be a string of 1 to %d bytes", maxMethod)
		return nil, &frameError{codeInvalidRequest, detail, f.id, f.id != nil}
	}
	if wrong := f.wrong(version, unknown); wrong != "" {
		return nil, &frameError{codeInvalidRequest, wrong, f.id, f.isRequest()}
	}
	return f, nil
}

// wrong describes the rule that a frame breaks, "" for none.
func (f *frame) wrong(version []byte, unknown []string) string {
	switch {
	case len(unknown) > 0:
		return "the frame has an unknown member " + gatehouse.Quote(unknown[0])
	case string(version) != `"2.0"`:
		return `jsonrpc must be "2.0"`
	case f.method != "" && (f.result != nil || f.failure != nil):
		return "the frame is both a request and a response"
	case f.params != nil && f.params[0] != '{':
		return "params must be an object"
	case f.method == "" && f.result == nil && f.failure == nil:
		return "the frame is neither a request nor a response"
	case f.result != nil && f.failure != nil:
		return "a response must have a result or an error, not both"
	case f.method == "" && f.params != nil:
		return "a response must have no params"
	case f.result != nil && f.id == nil:
		return "a response with a result must have an id"
	case f.failure != nil && f.failure[0] != '{':
		return "error must be an object"
	}
	return ""
}

// checkID describes what is wrong with the id, "" for nothing. It accepts strings and
// numbers. For an error that answers no request, it also accepts null, and sets the id to nil.
func (f *frame) checkID() string {
	if f.id == nil {
		return ""
	}
	if len(f.id) > maxID {
		return fmt.Sprintf("the id is longer than %d bytes", maxID)
	}
	switch c := f.id[0]; {
	case c == '"', c == '-', c >= '0' && c <= '9':
		return ""
	case string(f.id) == "null" && f.failure != nil && f.method == "":
		f.id = nil
		return ""
	}
	return "the id is neither a string nor a number"
}

// toolMethod reports whether a lenient server, which ignores case and spacing,
// could read a method as one about tools.
func toolMethod(method string) bool {
	trimmed := strings.TrimFunc(method, func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) })
	head, _, _ := strings.Cut(trimmed, "/")
	return strings.EqualFold(strings.TrimSpace(head), "tools")
}

// member is one member of an object; its value is raw.
type member struct {
	name  string
	value []byte
}

// members returns the members of an object that CheckJSON has accepted.
func members(object []byte) (list []member) {
	i := skipSpace(object, 0) + 1
	for {
		if i = skipSpace(object, i); object[i] == '}' {
			return list
		}
		if object[i] == ',' {
			i = skipSpace(object, i+1)
		}
		end := skipValue(object, i)
		var name string
		_ = json.Unmarshal(object[i:end], &name) // a string: the text was checked
		i = skipSpace(object, end)               // at the colon
		i = skipSpace(object, i+1)
		end = skipValue(object, i)
		list = append(list, member{name, object[i:end]})
		i = end
	}
}

// memberOf returns the value of a member, nil for none.
func memberOf(object []byte, name string) []byte {
	if len(object) == 0 || object[0] != '{' {
		return nil
	}
	for _, m := range members(object) {
		if m.name == name {
			return m.value
		}
	}
	return nil
}

// elements returns the elements of an array that CheckJSON has accepted.
func elements(array []byte) (list [][]byte) {
	i := skipSpace(array, 0) + 1
	for {
		if i = skipSpace(array, i); array[i] == ']' {
			return list
		}
		if array[i] == ',' {
			i = skipSpace(array, i+1)
		}
		end := skipValue(array, i)
		list = append(list, array[i:end])
		i = end
	}
}

func skipSpace(b []byte, i int) int {
	for i < len(b) && (b[i] == ' ' || b[i] == '\t' || b[i] == '\n' || b[i] == '\r') {
		i++
	}
	return i
}

// skipValue returns the end of the value at i, in a text that CheckJSON has
// accepted.
func skipValue(b []byte, i int) int {
	depth := 0
	for ; i < len(b); i++ {
		switch b[i] {
		case '"':
			for i++; b[i] != '"'; i++ {
				if b[i] == '\\' {
					i++
				}
			}
			if depth == 0 {
				return i + 1
			}
		case '{', '[':
			depth++
		case '}', ']':
			if depth == 0 {
				return i // the end of the enclosing value, after a number, a boolean or null
			}
			if depth--; depth == 0 {
				return i + 1
			}
		case ',', ':', ' ', '\t', '\n', '\r':
			if depth == 0 {
				return i
			}
		}
	}
	return i
}

// text returns a string value, unescaped; "" for any other value.
func text(value []byte) string {
	var s string
	if len(value) == 0 || value[0] != '"' || json.Unmarshal(value, &s) != nil {
		return ""
	}
	return s
}

// lines reads frames that end with a line feed.
type lines struct {
	r     *bufio.Reader
	limit int
}

func newLines(r io.Reader, limit int) *lines { return &lines{bufio.NewReaderSize(r, 64<<10), limit} }

// errTooLong is the error for a line over the limit, which has been read to its
// end and dropped. next also returns the line's first and last bytes, which may
// contain the id.
var errTooLong = errors.New("the frame is too long")

// edge is the approximate number of bytes kept at each end of a line over the limit.
const edge = 4 << 10

// next returns the next non-empty line without its end. The caller owns the
// bytes.
func (l *lines) next() ([]byte, error) {
	for {
		line, err := l.line()
		if err != nil || len(bytes.TrimLeft(line, " \t")) > 0 {
			return line, err
		}
	}
}

func (l *lines) line() ([]byte, error) {
	var line, tail []byte
	long := false
	for {
		part, err := l.r.ReadSlice('\n')
		switch {
		case long || len(line)+len(part) > l.limit+2:
			if !long {
				long, line = true, append(line[:min(len(line), edge)], part[:min(len(part), edge)]...)
			}
			tail = append(tail, part...)
			tail = tail[max(0, len(tail)-edge):]
		default:
			line = append(line, part...)
		}
		if errors.Is(err, bufio.ErrBufferFull) {
			continue
		}
		if err != nil && (len(line) == 0 || !errors.Is(err, io.EOF)) {
			return nil, err
		}
		if long {
			return append(line, tail...), errTooLong
		}
		line = bytes.TrimSuffix(line, []byte("\n"))
		return bytes.TrimSuffix(line, []byte("\r")), nil
	}
}

// errorFrame answers a request with an error.
func errorFrame(id []byte, code int, detail string) []byte {
	if id == nil {
		id = []byte("null")
	}
	return fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,"error":{"code":%d,"message":%s}}`, id, code,
		gatehouse.StringJSON(detail))
}

// resultFrame answers a request with an unchanged result.
func resultFrame(id, result []byte) []byte {
	return fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,"result":%s}`, id, result)
}

// setMember returns an object with one member replaced or added, or removed if
// value is nil. The values of the other members keep their bytes.
func setMember(object []byte, name string, value []byte) []byte {
	out := []byte{'{'}
	put := func(name string, value []byte) {
		if len(out) > 1 {
			out = append(out, ',')
		}
		out = append(append(append(out, gatehouse.StringJSON(name)...), ':'), value...)
	}
	for _, m := range members(object) {
		switch {
		case m.name != name:
			put(m.name, m.value)
		case value != nil:
			put(name, value)
			value = nil
		}
	}
	if value != nil {
		put(name, value)
	}
	return append(out, '}')
}
