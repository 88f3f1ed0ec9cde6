package telemetry

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"

	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"
)

// collector sends spans over OTLP and HTTP, as the OTEL_EXPORTER_OTLP_… variables say:
// https://opentelemetry.io/docs/specs/otel/protocol/exporter/. OpenTelemetry's own client
// needs gRPC to compile.
type collector struct {
	url    string
	header http.Header
	gzip   bool
	client *http.Client
	pause  time.Duration // before the second try; it doubles
}

// tries is how often a batch is sent before it is given up.
const tries = 5

// setting returns a variable of the exporter; that for traces comes first.
func setting(name string) string {
	return cmp.Or(os.Getenv("OTEL_EXPORTER_OTLP_TRACES_"+name), os.Getenv("OTEL_EXPORTER_OTLP_"+name))
}

func newCollector() (*collector, error) {
	c := &collector{header: http.Header{}, client: &http.Client{Timeout: 10 * time.Second}, pause: time.Second}
	endpoint := os.Getenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")
	if endpoint == "" {
		endpoint = strings.TrimSuffix(os.Getenv("OTEL_EXPORTER_OTLP_ENDPOINT"), "/") + "/v1/traces"
	}
	u, err := url.Parse(endpoint)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, errors.New("the OTLP endpoint is not an address such as http://collector:4318")
	}
	if u.Path == "" {
		u.Path = "/"
	}
	c.url = u.String()
	if p := setting("PROTOCOL"); p != "" && p != "http/protobuf" {
		return nil, fmt.Errorf("OTEL_EXPORTER_OTLP_PROTOCOL: spans are sent as http/protobuf, not %s", p)
	}
	for pair := range strings.SplitSeq(setting("HEADERS"), ",") {
		name, value, ok := strings.Cut(pair, "=")
		if value, err := url.PathUnescape(strings.TrimSpace(value)); ok && err == nil {
			c.header.Set(strings.TrimSpace(name), value)
		}
	}
	if ms, err := strconv.Atoi(setting("TIMEOUT")); err == nil && ms > 0 {
		c.client.Timeout = time.Duration(ms) * time.Millisecond
	}
	c.gzip = setting("COMPRESSION") == "gzip"
	security, err := tlsSettings()
	if err != nil {
		return nil, err
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.TLSClientConfig = security
	c.client.Transport = transport
	return c, nil
}

// tlsSettings reads the files that verify the collector, and that prove this process to it.
func tlsSettings() (*tls.Config, error) {
	c := &tls.Config{MinVersion: tls.VersionTLS12}
	if file := setting("CERTIFICATE"); file != "" {
		pem, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		c.RootCAs = x509.NewCertPool()
		if !c.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("%s has no certificate", file)
		}
	}
	if cert, key := setting("CLIENT_CERTIFICATE"), setting("CLIENT_KEY"); cert != "" && key != "" {
		pair, err := tls.LoadX509KeyPair(cert, key)
		if err != nil {
			return nil, err
		}
		c.Certificates = []tls.Certificate{pair}
	}
	return c, nil
}

// Start implements otlptrace.Client.
func (*collector) Start(context.Context) error { return nil }

// Stop implements otlptrace.Client.
func (c *collector) Stop(context.Context) error {
	c.client.CloseIdleConnections()
	return nil
}

// UploadTraces sends spans, again while the collector is busy or cannot be reached.
func (c *collector) UploadTraces(ctx context.Context, spans []*tracepb.ResourceSpans) error {
	// On the wire it is an ExportTraceServiceRequest.
	body, err := proto.Marshal(&tracepb.TracesData{ResourceSpans: spans})
	if err != nil {
		return err
	}
	if c.gzip {
		var b bytes.Buffer
		z := gzip.NewWriter(&b)
		if _, err := z.Write(body); err != nil {
			return err
		}
		if err := z.Close(); err != nil {
			return err
		}
		body = b.Bytes()
	}
	pause := c.pause
	for try := 1; ; try++ {
		again, wait, err := c.post(ctx, body)
		if err == nil || !again || try == tries {
			return err
		}
		select {
		case <-time.After(max(pause, wait)):
		case <-ctx.Done():
			return err
		}
		pause *= 2
	}
}

// post sends a body once. again tells whether another try can succeed, wait how long the
// collector asks for.
func (c *collector) post(ctx context.Context, body []byte) (again bool, wait time.Duration, err error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url, bytes.NewReader(body))
	if err != nil {
		return false, 0, err
	}
	r.Header = c.header.Clone()
	r.Header.Set("Content-Type", "application/x-protobuf")
	if c.gzip {
		r.Header.Set("Content-Encoding", "gzip")
	}
	answer, err := c.client.Do(r)
	if err != nil {
		return ctx.Err() == nil, 0, err
	}
	defer answer.Body.Close()
	said, _ := io.ReadAll(io.LimitReader(answer.Body, 1<<10))
	switch answer.StatusCode {
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		seconds, _ := strconv.Atoi(answer.Header.Get("Retry-After"))
		again, wait = true, time.Duration(seconds)*time.Second
	default:
		if answer.StatusCode/100 == 2 {
			return false, 0, nil
		}
	}
	return again, wait, fmt.Errorf("the collector answered %s: %q", answer.Status, said)
}
