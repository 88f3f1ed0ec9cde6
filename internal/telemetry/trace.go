package telemetry

import (
	"context"
	"crypto/sha256"
	"errors"
	"net/http"
	"os"
	"strings"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/gatehouse-dev/gatehouse"
)

// Tracing follows an action from its proposal to its receipt.
//
// An action may wait for days and may be continued by any replica, so no
// request's trace can contain it. Instead it has its own trace, whose id every
// process can compute: the first 16 bytes of the SHA-256 of the action's id
// ([TraceID]). Each span links to the request that caused it.
type Tracing struct {
	provider *sdktrace.TracerProvider
	tracer   trace.Tracer
}

// The variables that enable tracing; the exporter reads these and the other
// OTEL_EXPORTER_OTLP_… variables itself.
var endpoints = []string{"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT"}

// NewTracing returns the tracing that the environment configures, over OTLP and
// HTTP. It returns nil if none is configured; all methods work on nil and do
// nothing. OTEL_TRACES_SAMPLER and its argument are honoured, but a parent-based
// sampler has no effect on the spans of an action after its proposal: their
// parent always counts as sampled.
func NewTracing(ctx context.Context, version string) (*Tracing, error) {
	configured := false
	for _, name := range endpoints {
		configured = configured || os.Getenv(name) != ""
	}
	if !configured || os.Getenv("OTEL_SDK_DISABLED") == "true" {
		return nil, nil
	}
	exporter, err := otlptracehttp.New(ctx)
	if err != nil {
		return nil, err
	}
	res, err := resource.New(ctx,
		resource.WithAttributes(attribute.String("service.name", "gatehouse"), attribute.String("service.version", version)),
		resource.WithHost(), resource.WithFromEnv())
	if err != nil && !errors.Is(err, resource.ErrPartialResource) {
		return nil, err
	}
	return newTracing(sdktrace.WithBatcher(exporter), sdktrace.WithResource(res)), nil
}

func newTracing(opts ...sdktrace.TracerProviderOption) *Tracing {
	p := sdktrace.NewTracerProvider(append(opts, sdktrace.WithIDGenerator(actionIDs{}))...)
	return &Tracing{provider: p, tracer: p.Tracer("github.com/gatehouse-dev/gatehouse")}
}

// Close sends the remaining spans.
func (t *Tracing) Close() error {
	if t == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	return t.provider.Shutdown(ctx)
}

// TraceID returns the id of an action's trace.
func TraceID(actionID string) trace.TraceID {
	sum := sha256.Sum256([]byte(actionID))
	return trace.TraceID(sum[:16])
}

// rootSpanID returns the id of the span of an action's proposal.
func rootSpanID(actionID string) trace.SpanID {
	sum := sha256.Sum256([]byte(actionID))
	return trace.SpanID(sum[16:24])
}

type actionKey struct{}

// start begins a span of the action's trace, linked to the context's span. root is true for the span of the proposal,
// which is the parent of the action's other spans.
func (t *Tracing) start(
	ctx context.Context, name string, a actionRef, root bool, opts ...trace.SpanStartOption,
) (context.Context, trace.Span) {
	caused := trace.SpanContextFromContext(ctx)
	opts = append(opts,
		trace.WithAttributes(attribute.String("gatehouse.action", a.id), attribute.String("gatehouse.tenant", a.tenant)))
	if caused.IsValid() && caused.TraceID() != TraceID(a.id) {
		opts = append(opts, trace.WithLinks(trace.Link{SpanContext: caused}))
	}
	if root {
		return t.tracer.Start(context.WithValue(ctx, actionKey{}, a.id), name, append(opts, trace.WithNewRoot())...)
	}
	if caused.TraceID() != TraceID(a.id) {
		ctx = trace.ContextWithRemoteSpanContext(ctx, trace.NewSpanContext(trace.SpanContextConfig{
			TraceID: TraceID(a.id), SpanID: rootSpanID(a.id), TraceFlags: trace.FlagsSampled, Remote: true,
		}))
	}
	return t.tracer.Start(ctx, name, opts...)
}

type actionRef struct{ tenant, id string }

// end ends a span with its outcome. Refusals, which clients cause, are not
// marked as errors.
func end(span trace.Span, err error, attrs ...attribute.KeyValue) {
	span.SetAttributes(attrs...)
	var known *gatehouse.Error
	switch {
	case errors.As(err, &known):
		span.SetAttributes(attribute.String("gatehouse.code", string(known.Code)))
		if gatehouse.StatusOf(known.Code) >= http.StatusInternalServerError {
			span.SetStatus(codes.Error, string(known.Code))
		}
	case err != nil:
		span.SetStatus(codes.Error, "internal error")
	}
	span.End()
}

// Requests gives each request a span in the trace that its traceparent names,
// except health checks and scrapes.
func (t *Tracing) Requests(next http.Handler) http.Handler {
	if t == nil {
		return next
	}
	propagator := propagation.TraceContext{}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/healthz", "/readyz", "/metrics":
			next.ServeHTTP(w, r)
			return
		}
		ctx := propagator.Extract(r.Context(), propagation.HeaderCarrier(r.Header))
		ctx, span := t.tracer.Start(ctx, r.Method, trace.WithSpanKind(trace.SpanKindServer),
			trace.WithAttributes(attribute.String("http.request.method", r.Method)))
		defer span.End()
		rec := &statusWriter{ResponseWriter: w, status: http.StatusOK}
		r = r.WithContext(ctx)
		next.ServeHTTP(rec, r)
		if r.Pattern != "" { // the route, never the path, which contains tokens and ids
			route := r.Pattern[strings.IndexByte(r.Pattern, ' ')+1:]
			span.SetName(r.Method + " " + route)
			span.SetAttributes(attribute.String("http.route", route))
		}
		span.SetAttributes(attribute.Int("http.response.status_code", rec.status),
			attribute.String("gatehouse.request_id", w.Header().Get("X-Request-Id")))
		if rec.status >= http.StatusInternalServerError {
			span.SetStatus(codes.Error, http.StatusText(rec.status))
		}
	})
}

// statusWriter records the status.
type statusWriter struct {
	http.ResponseWriter
	status int
}

func (w *statusWriter) WriteHeader(status int) {
	w.status = status
	w.ResponseWriter.WriteHeader(status)
}

// Unwrap supports http.ResponseController.
func (w *statusWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// actionIDs derives the ids of a proposal's span from the action, and gives
// every other span random ids.
type actionIDs struct{}

func (actionIDs) NewIDs(ctx context.Context) (trace.TraceID, trace.SpanID) {
	if id, ok := ctx.Value(actionKey{}).(string); ok {
		return TraceID(id), rootSpanID(id)
	}
	return randomID[trace.TraceID](), randomID[trace.SpanID]()
}

func (actionIDs) NewSpanID(context.Context, trace.TraceID) trace.SpanID {
	return randomID[trace.SpanID]()
}
