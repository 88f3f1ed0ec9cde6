package rest

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"

	"github.com/gatehouse-dev/gatehouse"
)

// Request is one request to be sent.
type Request struct {
	Method string
	URL    *url.URL
	Header http.Header
	// Secret is the set of canonical names of the headers whose values are hidden.
	Secret map[string]bool
	// Body is sent if HasBody is set.
	Body    []byte
	HasBody bool
}

// NewRequest makes a request without headers and body.
func NewRequest(method string, u *url.URL) *Request {
	return &Request{Method: method, URL: u, Header: make(http.Header), Secret: make(map[string]bool)}
}

// SetSecret sets a header whose value is hidden in the metadata.
func (r *Request) SetSecret(name, value string) {
	r.Header.Set(name, value)
	r.Secret[http.CanonicalHeaderKey(name)] = true
}

// SetJSON sets the body to a JSON text.
func (r *Request) SetJSON(body gatehouse.JSON) {
	r.Header.Set("Content-Type", "application/json")
	r.Body, r.HasBody = []byte(body), true
}

// Metadata describes the request for the receipt. Secrets are left out.
func (r *Request) Metadata() gatehouse.JSON {
	shown := make([]gatehouse.Member, 0, len(r.Header))
	for _, name := range slices.Sorted(maps.Keys(r.Header)) {
		value := gatehouse.StringJSON(r.Header.Get(name))
		if r.Secret[name] {
			value = `"[redacted]"`
		}
		shown = append(shown, gatehouse.Member{Name: name, Value: value})
	}
	members := []gatehouse.Member{
		{Name: "method", Value: gatehouse.StringJSON(r.Method)},
		{Name: "url", Value: gatehouse.StringJSON(r.URL.String())},
		{Name: "headers", Value: gatehouse.ObjectJSON(shown...)},
	}
	if r.HasBody {
		sum := sha256.Sum256(r.Body)
		members = append(members,
			gatehouse.Member{Name: "body_sha256", Value: gatehouse.StringJSON(hex.EncodeToString(sum[:]))},
			gatehouse.Member{Name: "body_bytes", Value: gatehouse.JSON(strconv.Itoa(len(r.Body)))})
	}
	return gatehouse.ObjectJSON(members...)
}

// oneShot hides every method of a body except Read, so that net/http cannot rewind and resend it.
type oneShot struct{ io.Reader }

func (oneShot) Close() error { return nil }

// http makes the http.Request. It can be sent only once.
func (r *Request) http(ctx context.Context) (*http.Request, error) {
	req, err := http.NewRequestWithContext(ctx, r.Method, r.URL.String(), nil)
	if err != nil {
		return nil, err
	}
	req.URL = r.URL
	req.Header = r.Header.Clone()
	if r.HasBody {
		req.Body, req.ContentLength = oneShot{bytes.NewReader(r.Body)}, int64(len(r.Body))
	}
	req.GetBody = nil
	return req, nil
}
