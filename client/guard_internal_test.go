package client

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gatehouse-dev/gatehouse"
)

// answers is a transport that answers each request as a server would.
type answers func(*http.Request) (status int, header http.Header, body string)

func (f answers) RoundTrip(r *http.Request) (*http.Response, error) {
	status, header, body := f(r)
	return &http.Response{StatusCode: status, Header: header, Body: io.NopCloser(strings.NewReader(body)), Request: r}, nil
}

// TestGuardKeepsItsPatience: a call does not outlast its patience because the server asks for a longer pause.
func TestGuardKeepsItsPatience(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c, err := New("http://gatehouse", "k", WithRetries(0, time.Millisecond), WithHTTPClient(&http.Client{
			Transport: answers(func(r *http.Request) (int, http.Header, string) {
				if r.Method == http.MethodPost { // a request for a lease
					return http.StatusServiceUnavailable,
						http.Header{"Retry-After": {"3600"}, "Content-Type": {"application/problem+json"}}, `{"code":"busy"}`
				}
				return http.StatusOK, http.Header{"Content-Type": {"application/json"}},
					`{"id":"act_1","connector":"x","status":"approved"}`
			}),
		}))
		if err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		a := &gatehouse.Action{ID: "act_1", Status: gatehouse.StatusApproved}
		got, _, err := NewGuard(c, 10*time.Second).settle(t.Context(), a)
		if err != nil || got.Status != gatehouse.StatusApproved || time.Since(began) > 11*time.Second {
			t.Errorf("after %s: %+v, %v", time.Since(began), got, err)
		}
	})
}
