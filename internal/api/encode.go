package api

import (
	"bytes"
	"net/http"
	"strconv"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	jsonv1 "github.com/go-json-experiment/json/v1"

	"github.com/gatehouse-dev/gatehouse"
)

// wire are the options for encoding answers: omitempty as in encoding/json,
// empty lists as [], numbers and canonical JSON exactly as stored.
var wire = json.JoinOptions(
	jsonv1.OmitEmptyWithLegacySemantics(true),
	json.Deterministic(true),
	jsontext.AllowInvalidUTF8(true),
	jsontext.AllowDuplicateNames(true), // none of our types has any
	json.WithMarshalers(json.MarshalToFunc(func(enc *jsontext.Encoder, j gatehouse.JSON) error {
		if j == "" {
			return enc.WriteToken(jsontext.Null)
		}
		return enc.WriteValue(jsontext.Value(j))
	})),
)

// Header values shared by answers.
var (
	headerJSON    = []string{"application/json"}
	headerProblem = []string{"application/problem+json"}
	headerNoStore = []string{"no-store"}
	headerNoSniff = []string{"nosniff"}
)

// encoded keeps the bytes that the use case encoded for the store, so that the
// first answer and its repeats are identical.
type encoded struct {
	value any
	body  []byte
}

func (c *call) encode(value any) ([]byte, error) {
	b, done := appendValue(nil, value)
	if !done {
		var err error
		if b, err = json.Marshal(value, wire); err != nil {
			return nil, err
		}
	}
	c.answer = encoded{value, b}
	return b, nil
}

// write sends a value as the JSON answer.
func (s *Server) write(w http.ResponseWriter, status int, c *call, value any) error {
	if c.answer.body != nil && sameValue(c.answer.value, value) {
		writeBytes(w, status, headerJSON, c.answer.body)
		return nil
	}
	buf := buffers.Get().(*bytes.Buffer)
	buf.Reset()
	defer release(buf)
	if b, done := appendValue(buf.AvailableBuffer(), value); done {
		writeBytes(w, status, headerJSON, b)
		_, _ = buf.Write(b) // so that the pool keeps a buffer large enough for b
		return nil
	}
	if err := json.MarshalWrite(buf, value, wire); err != nil {
		return err
	}
	writeBytes(w, status, headerJSON, buf.Bytes())
	return nil
}

// sameValue compares pointers; values of other types are never the same.
func sameValue(a, b any) bool {
	switch a := a.(type) {
	case *gatehouse.Action:
		b, ok := b.(*gatehouse.Action)
		return ok && a == b
	case *gatehouse.Answer:
		b, ok := b.(*gatehouse.Answer)
		return ok && a == b
	case *gatehouse.ShortAnswer:
		b, ok := b.(*gatehouse.ShortAnswer)
		return ok && a == b
	case *gatehouse.BulkAnswer:
		b, ok := b.(*gatehouse.BulkAnswer)
		return ok && a == b
	}
	return false
}

func writeBytes(w http.ResponseWriter, status int, contentType []string, b []byte) {
	h := w.Header()
	h["Content-Type"] = contentType
	h["Cache-Control"] = headerNoStore
	h["X-Content-Type-Options"] = headerNoSniff
	h["Content-Length"] = []string{strconv.Itoa(len(b))}
	w.WriteHeader(status)
	// An error means that the client has gone.
	_, _ = w.Write(b) //nolint:gosec // JSON or problem+json, and nosniff
}
