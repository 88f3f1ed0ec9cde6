package serve

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"
)

// TestSecretsOutliveTheirJob: the secrets that cannot be read again are stored although the job is being ended.
func TestSecretsOutliveTheirJob(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	stored := 0
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if stored++; stored == 1 {
			cancel()
			w.WriteHeader(http.StatusInternalServerError)
		}
	}))
	defer api.Close()
	s := &clusterSecret{name: "admin", namespace: "gate", base: api.URL, token: "tok", client: api.Client()}
	if err := s.fill(ctx, map[string]string{"admin_key": "gth_x"}); err != nil || stored != 2 {
		t.Errorf("%d calls, %v", stored, err)
	}
}
