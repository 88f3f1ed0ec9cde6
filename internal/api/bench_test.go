package api

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/gatehouse-dev/gatehouse"
)

// quick answers at once, so that a benchmark measures only the HTTP layer.
type quick struct {
	*fake
	answer *gatehouse.Answer
	short  *gatehouse.ShortAnswer
}

func (q quick) Decide(ctx context.Context, _ string, _ gatehouse.Decision) (*gatehouse.Answer, error) {
	if _, err := gatehouse.CallerFrom(ctx); err != nil {
		return nil, err
	}
	return q.answer, nil
}

func (q quick) Answer(ctx context.Context, _ string, _ gatehouse.Decision) (*gatehouse.ShortAnswer, error) {
	if _, err := gatehouse.CallerFrom(ctx); err != nil {
		return nil, err
	}
	return q.short, nil
}

// bareDecide is a minimal handler of the same endpoint: it reads, decodes and
// encodes, without checks.
func bareDecide(answer *gatehouse.Answer) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, err := io.ReadAll(r.Body)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		var d gatehouse.Decision
		if err := json.Unmarshal(b, &d); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		out, err := json.Marshal(answer)
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(out)
	})
}

// nullWriter is a ResponseWriter that discards the body.
type nullWriter struct {
	header http.Header
	status int
}

func (w *nullWriter) Header() http.Header         { return w.header }
func (w *nullWriter) Write(b []byte) (int, error) { return len(b), nil }
func (w *nullWriter) WriteHeader(status int)      { w.status = status }

// BenchmarkDecideHandler compares the API's handlers with plain net/http
// handlers. The difference is the cost of ordered checks, strict decoding,
// request ids and metrics.
func BenchmarkDecideHandler(b *testing.B) {
	f := newFake()
	q := quick{
		f, sampleOf(typeOf[*gatehouse.Answer]()).(*gatehouse.Answer),
		sampleOf(typeOf[*gatehouse.ShortAnswer]()).(*gatehouse.ShortAnswer),
	}
	s := newServer(b, f, func(c *Config) { c.Actions = q })
	mux := http.NewServeMux()
	mux.Handle("POST /api/v1/proposed-actions/{id}/decide", bareDecide(q.answer))
	decide := `{"decision":"approved","digest":"` + string(testAction().Digest) + `","notes":"looks right"}`
	short := `{"digest":"` + string(testAction().Digest) + `","notes":"looks right"}`
	for _, bench := range []struct {
		name, path, body, key string
		handler               http.Handler
	}{
		{"bare", decidePath, decide, "", mux},
		{"decide", decidePath, decide, "", s},
		{"decide+key", decidePath, decide, "k", s},
		{"approve", "/api/v1/approvals/apr_1/approve", short, "", s},
	} {
		b.Run(bench.name, func(b *testing.B) {
			b.ReportAllocs()
			template := request{method: "POST", path: bench.path, key: "gth_ana", token: "gte_ana"}.http()
			if bench.key != "" {
				template.Header.Set("Idempotency-Key", bench.key)
			}
			w := &nullWriter{header: make(http.Header)}
			body := strings.NewReader(bench.body)
			closer := io.NopCloser(body)
			for b.Loop() {
				body.Reset(bench.body)
				r := *template
				r.Body, r.ContentLength = closer, int64(len(bench.body))
				clear(w.header)
				bench.handler.ServeHTTP(w, &r)
				if w.status >= 400 {
					b.Fatal(w.status)
				}
			}
		})
	}
}

// BenchmarkEncodeAction compares the wire encoder with encoding/json.
func BenchmarkEncodeAction(b *testing.B) {
	a := testAction()
	b.Run("wire", func(b *testing.B) {
		b.ReportAllocs()
		c := new(call)
		for b.Loop() {
			if _, err := c.encode(a); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("encoding-json", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := json.Marshal(a); err != nil {
				b.Fatal(err)
			}
		}
	})
}
