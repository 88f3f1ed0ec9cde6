package api

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/client"
)

// TestHealthReportsTheBuild: /healthz shows the server's build to callers without a
// key, and a client sends no secret to it.
func TestHealthReportsTheBuild(t *testing.T) {
	t.Parallel()
	s := newServer(t, newFake())
	var sent http.Header
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		sent = r.Header
		s.ServeHTTP(w, r)
	}))
	defer server.Close()
	for _, key := range []string{"", "gth_all"} {
		c, err := client.New(server.URL, key, client.WithEditToken("gte_all"))
		must(t, err)
		got, err := c.Health(t.Context())
		must(t, err)
		if want := (gatehouse.Health{Status: "ok", Build: testBuild}); *got != want {
			t.Errorf("got %+v, want %+v", *got, want)
		}
		if sent.Get("Authorization") != "" || sent.Get("X-Edit-Token") != "" {
			t.Errorf("secrets were sent: %v", sent)
		}
	}
	// Unknown parts are left out.
	plain := newServer(t, newFake(), func(c *Config) { c.Build = gatehouse.Build{Version: "1"} })
	if got := (request{path: "/healthz"}).send(plain).Body.String(); got != `{"status":"ok","version":"1"}` {
		t.Error(got)
	}
}

func TestDocumentDescribesHealth(t *testing.T) {
	t.Parallel()
	doc := document(nil, nil, false, "test")
	ref := doc.Paths["/healthz"].Get.Responses["200"].Content["application/json"].Schema.Ref
	properties := doc.Components.Schemas.SchemaFromRef(ref).Properties
	for _, name := range []string{"status", "version", "commit", "date"} {
		if properties[name] == nil {
			t.Errorf("no %s in %s", name, ref)
		}
	}
}
