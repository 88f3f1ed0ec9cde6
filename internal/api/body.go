package api

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"reflect"
	"strings"
	"sync"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/gatehouse-dev/gatehouse"
)

// MaxBody bounds the body of a request, in bytes.
const MaxBody = 1 << 20

// maxPointer bounds a JSON pointer in an error: a member's name can be as long
// as the body.
const maxPointer = 1024

var buffers = sync.Pool{New: func() any { return new(bytes.Buffer) }}

// maxKept bounds the size of a buffer that is kept, in bytes. A page of the
// inbox fits, so such answers do not allocate a new buffer each time.
const maxKept = 256 << 10

// release returns a buffer to the pool unless it has grown too large.
func release(b *bytes.Buffer) {
	if b.Cap() <= maxKept {
		buffers.Put(b)
	}
}

// readBody returns the body's bytes, valid until done is called. A client that
// takes longer than timeout is cut off. http.Server's ReadTimeout is not used for
// this, because it would cut off long polls too.
func readBody(
	w http.ResponseWriter, r *http.Request, rt *route, timeout time.Duration,
) (raw []byte, done func(), err error) {
	if r.Method == http.MethodGet || r.Method == http.MethodHead {
		return nil, func() {}, nil
	}
	if r.ContentLength > MaxBody {
		return nil, nil, tooLarge(MaxBody)
	}
	if header := r.Header["Content-Type"]; rt.decode != nil && !isJSON(header) {
		if !rt.text {
			return nil, nil, malformed("", "the content type must be application/json")
		}
		if !isYAML(header) {
			return nil, nil, malformed("", "the content type must be application/yaml or application/json")
		}
	}
	buf := buffers.Get().(*bytes.Buffer)
	buf.Reset()
	defer func() {
		if err != nil {
			release(buf)
		}
	}()
	if err := fill(buf, w, r, timeout); err != nil {
		return nil, nil, err
	}
	raw = buf.Bytes()
	switch blank := len(bytes.TrimSpace(raw)) == 0; {
	case rt.decode == nil && !blank && !emptyObject(raw):
		return nil, nil, malformed("", "this call takes no body")
	case rt.decode != nil && blank && rt.optional:
		raw = []byte("{}")
	case rt.decode != nil && blank:
		return nil, nil, malformed("", "a body is needed")
	}
	return raw, func() { release(buf) }, nil
}

// fill reads a body of at most [MaxBody] bytes into an empty buffer.
func fill(buf *bytes.Buffer, w http.ResponseWriter, r *http.Request, timeout time.Duration) error {
	if r.ContentLength != 0 {
		// A writer without deadlines, as in tests, needs none.
		deadline := http.NewResponseController(w)
		_ = deadline.SetReadDeadline(time.Now().Add(timeout))
		if _, err := buf.ReadFrom(io.LimitReader(r.Body, MaxBody+1)); err != nil {
			return malformed("", "the body could not be read to its end")
		}
		_ = deadline.SetReadDeadline(time.Time{})
	}
	if buf.Len() > MaxBody {
		return tooLarge(MaxBody)
	}
	return nil
}

func emptyObject(raw []byte) bool {
	raw = bytes.TrimSpace(raw)
	return len(raw) >= 2 && raw[0] == '{' && raw[len(raw)-1] == '}' && len(bytes.TrimSpace(raw[1:len(raw)-1])) == 0
}

func tooLarge(limit int) error {
	return gatehouse.E(gatehouse.CodeBodyTooLarge, "a body is at most %d bytes", limit).With("limit", limit)
}

// isJSON reports whether a content type allows JSON. It accepts the defaults of
// curl and similar clients. This is safe: the body is parsed only as JSON, and
// the API accepts no cookie that a web page's form could use.
func isJSON(header []string) bool {
	switch len(header) {
	case 0:
		return true
	case 1:
		if header[0] == "application/json" {
			return true
		}
		t, params, err := mime.ParseMediaType(header[0])
		if charset := params["charset"]; err != nil || charset != "" && !strings.EqualFold(charset, "utf-8") {
			return false
		}
		return t == "application/json" || strings.HasSuffix(t, "+json") ||
			t == "text/plain" || t == "application/x-www-form-urlencoded"
	}
	return false
}

// isYAML reports whether a content type stands for YAML: that of RFC 9512, or
// an older name.
func isYAML(header []string) bool {
	if len(header) != 1 {
		return false
	}
	t, params, err := mime.ParseMediaType(header[0])
	if charset := params["charset"]; err != nil || charset != "" && !strings.EqualFold(charset, "utf-8") {
		return false
	}
	switch t {
	case "application/yaml", "text/yaml", "application/x-yaml", "text/x-yaml":
		return true
	}
	return false
}

// malformed returns the error for a body that is not acceptable JSON.
func malformed(pointer, detail string) error {
	if len(pointer) > maxPointer {
		pointer = strings.ToValidUTF8(pointer[:maxPointer], "") + "…"
	}
	return (&gatehouse.Error{
		Code: gatehouse.CodeMalformed, Detail: strings.TrimPrefix(pointer+" "+detail, " "),
		Violations: gatehouse.Violations{{Pointer: pointer, Detail: detail}},
	}).With("pointer", pointer)
}

var strict = json.JoinOptions(
	json.RejectUnknownMembers(true),
	// CheckJSON has already checked both.
	jsontext.AllowDuplicateNames(true),
	jsontext.AllowInvalidUTF8(true),
)

// decodeStrict decodes a JSON object into the struct that out points to.
// Invalid JSON, too deep nesting, and duplicate or unknown members are
// malformed; a value of the wrong type is invalid. Names are case-sensitive.
func decodeStrict(raw []byte, out any) error {
	if err := gatehouse.CheckJSON(raw); err != nil {
		var syntax *gatehouse.SyntaxError
		if errors.As(err, &syntax) {
			return malformed(syntax.Pointer, fmt.Sprintf("%s (at byte %d)", syntax.Detail, syntax.Offset))
		}
		return malformed("", "is not JSON")
	}
	if bytes.TrimLeft(raw, " \t\r\n")[0] != '{' {
		return gatehouse.Violations{{Pointer: "", Detail: "must be an object"}}.Err()
	}
	err := json.Unmarshal(raw, out, strict)
	if err == nil {
		return nil
	}
	var semantic *json.SemanticError
	if !errors.As(err, &semantic) {
		return malformed("", "is not valid JSON for this call")
	}
	pointer := string(semantic.JSONPointer)
	if errors.Is(semantic.Err, json.ErrUnknownName) {
		return malformed(pointer, "is an unknown member")
	}
	return gatehouse.Violations{{Pointer: pointer, Detail: wrongType(semantic)}}.Err()
}

// wrongType describes the expected type. Errors of this module's types stay
// unchanged; errors of the decoder are translated to the contract's terms.
func wrongType(e *json.SemanticError) string {
	if e.GoType == nil {
		return "has the wrong type"
	}
	switch t := e.GoType; {
	case (t == typeOf[gatehouse.Duration]() || t == typeOf[gatehouse.Span]()) && e.JSONKind != '"':
		return "must be a string such as 30s, 4h or 7d"
	case t == typeOf[time.Time]():
		return "must be a time such as 2026-01-02T15:04:05Z"
	case t == typeOf[gatehouse.Duration](), t == typeOf[gatehouse.Span](), t == typeOf[gatehouse.Decimal](),
		t == typeOf[gatehouse.JSON](), t == typeOf[gatehouse.Hash]():
		if e.Err != nil {
			return e.Err.Error()
		}
	}
	t := e.GoType
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch t.Kind() {
	case reflect.String:
		return "must be a string"
	case reflect.Bool:
		return "must be true or false"
	case reflect.Int, reflect.Int64:
		return "must be an integer"
	case reflect.Slice:
		return "must be an array"
	case reflect.Struct, reflect.Map:
		return "must be an object"
	}
	return "has the wrong type"
}
