package httpconn_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/gatehouse-dev/gatehouse/connector/connectortest"
	httpconn "github.com/gatehouse-dev/gatehouse/connector/http"
)

// TestProbe: a probe with a path tests the credentials; a probe without a path says that it did not.
func TestProbe(t *testing.T) {
	t.Parallel()
	me := &httpconn.Probe{Path: "/me?fields=id"}
	const accepted = "its target answers and accepts the credentials"
	for name, test := range map[string]struct {
		probe       *httpconn.Probe
		token       string
		change      func(*crm, *httpconn.Config)
		shown, says string
		asked       int
	}{
		"accepted":     {me, token, nil, accepted, "", 1},
		"revoked":      {me, "s3cret-old", nil, "", "the credentials are refused: the target answered 401", 1},
		"without path": {nil, "s3cret-old", nil, "its target answers; set probe to test the credentials", "", 0},
		"other account": {me, "s3cret-other", func(s *crm, _ *httpconn.Config) { s.refusal = http.StatusForbidden },
			"", "the credentials are refused: the target answered 403", 1},
		"no such path": {&httpconn.Probe{Path: "/nothing"}, token, nil, "", "the target answered 404", 1},
		"a header of actions": {me, token, func(_ *crm, c *httpconn.Config) {
			c.Headers = map[string]httpconn.Value{"X-Action": {Template: "{action_id}"}, "X-Of": {Template: "gate"}}
		}, accepted, "", 1},
		"no credentials": {nil, token, func(_ *crm, c *httpconn.Config) { c.Auth = nil }, "its target answers", "", 0},
		"nobody answers": {me, token, func(s *crm, _ *httpconn.Config) { s.Close() }, "", "no connection", 0},
	} {
		s := newCRM(t)
		cfg := s.config()
		cfg.Probe = test.probe
		if test.change != nil {
			test.change(s, &cfg)
		}
		c := connectortest.WithSecret(httpconn.New, cfg, test.token)(t)
		connectortest.Probe(t, c, "^"+test.shown+"$", test.says, "s3cret")
		if got := s.requests(); len(got) != test.asked || test.asked > 0 && !strings.HasPrefix(got[0], "GET ") {
			t.Errorf("%s: asked %q", name, got)
		}
	}
}

// TestProbeOfOAuth2: an access token is fetched, and with a path also used.
func TestProbeOfOAuth2(t *testing.T) {
	t.Parallel()
	s := newIDP(t)
	shown, err := s.connector(t, nil).ProbeReport(t.Context())
	if err != nil || !strings.Contains(shown, "its authorization server accepts the credentials") || len(s.calls) != 0 {
		t.Errorf("%q, %v, %q", shown, err, s.calls)
	}
	c := s.connector(t, func(cfg *httpconn.Config) { cfg.Probe = &httpconn.Probe{Path: "/me"} })
	if err := c.Probe(t.Context()); err != nil {
		t.Error(err)
	}
	s.revoke()
	if err := c.Probe(t.Context()); err != nil {
		t.Errorf("a token that was revoked is not replaced: %v", err)
	}
	s.dead = true
	if err := c.Probe(t.Context()); err == nil || !strings.Contains(err.Error(), "refused: the target answered 401") {
		t.Errorf("no token is accepted: %v", err)
	}
}

// TestProbeIsChecked: a path that a test call cannot have is refused, and the probe is not part of
// the fingerprint.
func TestProbeIsChecked(t *testing.T) {
	t.Parallel()
	s := newCRM(t)
	base := newConnector(t, s.config()).Fingerprint()
	for path, says := range map[string]string{
		"me": "probe.path: must begin with a slash", "/{entity_ref}": "probe.path: cannot have placeholders",
		"/me?id={tenant}": "probe.path: cannot have placeholders", "/../me": "probe.path: has a segment", "/me": "",
	} {
		cfg := s.config()
		cfg.Probe = &httpconn.Probe{Path: path}
		c, err := httpconn.New(t.Context(), cfg, secrets)
		switch {
		case (err == nil) != (says == "") || err != nil && !strings.HasPrefix(err.Error(), says):
			t.Errorf("%s: %v", path, err)
		case err == nil && c.Fingerprint() != base:
			t.Errorf("%s changes the fingerprint", path)
		}
	}
}
