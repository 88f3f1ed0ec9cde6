package rest_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/gatehouse-dev/gatehouse/connector/internal/rest"
)

func TestRetryAfter(t *testing.T) {
	t.Parallel()
	const date = "Mon, 23 Nov 2026 10:00:00 GMT"
	for value, want := range map[string]time.Duration{
		"": 0, "7": 7 * time.Second, "-1": 0, "soon": 0, "999999": 24 * time.Hour,
		"Mon, 23 Nov 2026 10:00:30 GMT": 30 * time.Second,
		"Mon, 23 Nov 2026 09:00:00 GMT": 0,
	} {
		h := http.Header{"Date": {date}}
		if value != "" {
			h.Set("Retry-After", value)
		}
		if got := rest.RetryAfter(h); got != want {
			t.Errorf("%q: %v, want %v", value, got, want)
		}
	}
}
