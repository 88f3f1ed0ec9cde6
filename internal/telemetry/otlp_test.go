package telemetry

import (
	"compress/gzip"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"
)

// TestCollector: spans go where the variables say, with their headers, and again while the
// collector is busy.
func TestCollector(t *testing.T) {
	answers := []int{http.StatusServiceUnavailable, http.StatusTooManyRequests, http.StatusOK}
	var got []string
	sink := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		z, err := gzip.NewReader(r.Body)
		if err != nil {
			t.Error(err)
			return
		}
		raw, err := io.ReadAll(z)
		var d tracepb.TracesData
		if err != nil || proto.Unmarshal(raw, &d) != nil || len(d.ResourceSpans) != 1 {
			t.Errorf("not the spans: %q, %v", raw, err)
		}
		got = append(got, r.Method+" "+r.URL.Path+" "+r.Header.Get("Content-Type")+" "+r.Header.Get("Authorization"))
		w.WriteHeader(answers[min(len(got), len(answers))-1])
	}))
	defer sink.Close()
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", sink.URL+"/base/")
	t.Setenv("OTEL_EXPORTER_OTLP_HEADERS", "a=b, Authorization=Bearer%20x")
	t.Setenv("OTEL_EXPORTER_OTLP_COMPRESSION", "gzip")
	upload := func() error {
		t.Helper()
		c, err := newCollector()
		if err != nil {
			t.Fatal(err)
		}
		c.pause = time.Millisecond
		return c.UploadTraces(t.Context(), []*tracepb.ResourceSpans{{SchemaUrl: "x"}})
	}
	if err := upload(); err != nil {
		t.Error(err)
	}
	if want := "POST /base/v1/traces application/x-protobuf Bearer x"; len(got) != 3 || got[2] != want {
		t.Errorf("got %q", got)
	}

	// What the collector refuses is not sent again.
	got, answers = nil, []int{http.StatusBadRequest}
	t.Setenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", sink.URL+"/own")
	if err := upload(); err == nil || len(got) != 1 || !strings.HasPrefix(got[0], "POST /own ") {
		t.Errorf("%q, %v", got, err)
	}
	// Nor for ever what it never takes.
	got, answers = nil, []int{http.StatusBadGateway}
	if err := upload(); err == nil || len(got) != tries {
		t.Errorf("%d tries, %v", len(got), err)
	}
	c, err := newCollector()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	c.pause = time.Hour
	if err := c.UploadTraces(ctx, []*tracepb.ResourceSpans{{SchemaUrl: "x"}}); err == nil || t.Context().Err() != nil {
		t.Errorf("it waits past its context: %v", err)
	}
}

func TestCollectorRefusesItsSettings(t *testing.T) {
	for name, value := range map[string]string{
		"TRACES_ENDPOINT": "collector:4318", "PROTOCOL": "grpc", "CERTIFICATE": "otlp.go",
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:1")
			t.Setenv("OTEL_EXPORTER_OTLP_"+name, value)
			if _, err := newCollector(); err == nil {
				t.Error("accepted")
			}
		})
	}
}
