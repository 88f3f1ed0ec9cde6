package servicenow_test

import (
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/connector"
	"github.com/gatehouse-dev/gatehouse/connector/servicenow"
	"github.com/gatehouse-dev/gatehouse/internal/snowtest"
)

// whenWriting calls a function just before the next write is handled.
func (w *world) whenWriting(do func()) {
	var done atomic.Bool
	f := func(r *http.Request) snowtest.Fault {
		if r.Method != http.MethodGet && done.CompareAndSwap(false, true) {
			do()
		}
		return snowtest.Fault{}
	}
	w.fault.Store(&f)
}

// TestFaults: what each answer to the write, and to the read before it, proves.
func TestFaults(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		fault      snowtest.Fault
		write      connector.Kind
		writeCode  string
		read       connector.Kind
		readCode   string
		retryAfter time.Duration
		effects    int
	}{
		"answer lost": {
			snowtest.Fault{Drop: true}, connector.Ambiguous, "connection_lost",
			connector.NotSent, "connection_lost", 0, 1,
		},
		"429": {
			snowtest.Fault{Status: 429, RetryAfter: "7"}, connector.Transient, "http_429",
			connector.NotSent, "http_429", 7 * time.Second, 0,
		},
		"500": {
			snowtest.Fault{Status: 500}, connector.Ambiguous, "http_500",
			connector.NotSent, "http_500", 0, 0,
		},
		"503": {
			snowtest.Fault{Status: 503, RetryAfter: "9"}, connector.Ambiguous, "http_503",
			connector.NotSent, "http_503", 9 * time.Second, 0,
		},
		"302": {
			snowtest.Fault{Status: 302}, connector.Terminal, "redirect",
			connector.NotSent, "redirect", 0, 0,
		},
		"400": {
			snowtest.Fault{Status: 400}, connector.Terminal, "http_400",
			connector.NotSent, "http_400", 0, 0,
		},
		"401": {
			snowtest.Fault{Status: 401}, connector.Terminal, "http_401",
			connector.Terminal, "http_401", 0, 0,
		},
		"403": {
			snowtest.Fault{Status: 403}, connector.Terminal, "http_403",
			connector.Terminal, "http_403", 0, 0,
		},
		"404": {
			snowtest.Fault{Status: 404}, connector.Terminal, "http_404",
			connector.Terminal, "target_changed", 0, 0,
		},
		"a page": {
			snowtest.Fault{Page: true}, connector.Ambiguous, "no_result",
			connector.NotSent, "no_result", 0, 0,
		},
	} {
		for _, reads := range []bool{false, true} {
			t.Run(name+"/"+map[bool]string{false: "write", true: "read"}[reads], func(t *testing.T) {
				t.Parallel()
				w := newWorld(t, nil)
				c := w.connector(t, nil)
				w.breaks(test.fault, reads)
				_, err := c.Execute(t.Context(), w.update())
				kind, code, effects, sent := test.write, test.writeCode, test.effects, int64(1)
				if reads {
					kind, code, effects, sent = test.read, test.readCode, 0, 0
				}
				wantFailure(t, err, kind, code)
				if e := failure(t, err); e != nil && e.RetryAfter != test.retryAfter {
					t.Errorf("retry after %v", e.RetryAfter)
				}
				if len(w.Writes()) != effects || w.changes.Load() != sent {
					t.Errorf("%d effects, %d writes were sent", len(w.Writes()), w.changes.Load())
				}
			})
		}
	}
}

// TestRefusedAndGone: the instance refuses a conditional write with 403, and no longer shows the record.
func TestRefusedAndGone(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	var refused atomic.Bool
	fault := func(r *http.Request) snowtest.Fault {
		switch {
		case r.Method != http.MethodGet:
			refused.Store(true)
			return snowtest.Fault{Status: http.StatusForbidden}
		case refused.Load():
			return snowtest.Fault{Status: http.StatusNotFound}
		}
		return snowtest.Fault{}
	}
	w.fault.Store(&fault)
	_, err := w.connector(t, conditional).Execute(t.Context(), w.update())
	wantFailure(t, err, connector.Terminal, "target_changed")
	if e := failure(t, err); e != nil && !strings.Contains(e.Detail, "does not exist") {
		t.Errorf("detail %q", e.Detail)
	}
}

// TestHeld: after a 429 with Retry-After, nothing is sent until that time.
func TestHeld(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	c := w.connector(t, nil)
	w.breaks(snowtest.Fault{Status: 429, RetryAfter: "3600"}, false)
	_, err := c.Execute(t.Context(), w.update())
	wantFailure(t, err, connector.Transient, "http_429")
	w.mend()
	sent := w.requests.Load()
	for range 20 {
		_, err = c.Execute(t.Context(), w.update())
		wantFailure(t, err, connector.NotSent, "rate_limited")
		if e := failure(t, err); e.RetryAfter < 59*time.Minute {
			t.Errorf("retry after %v", e.RetryAfter)
		}
	}
	if w.requests.Load() != sent {
		t.Error("the instance was called")
	}
}

// TestAnswerLost: an effect that exists is found; if none is found, nothing is concluded.
func TestAnswerLost(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		operation string
		change    gatehouse.JSON
	}{
		"note":  {"work_note", `{"text":"x"}`},
		"label": {"add_label", `{"label":"vip"}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, nil)
			conn := w.connector(t, nil)
			call := w.call(c.operation, c.change)
			call.CurrentState = `{"state":"1"}`
			found(t, conn, call, connector.Inconclusive)
			w.breaks(snowtest.Fault{Drop: true}, false)
			_, err := conn.Execute(t.Context(), call)
			wantFailure(t, err, connector.Ambiguous, "connection_lost")
			w.mend()
			if res := found(t, conn, call, connector.Present); res.ExternalID != "INC0010001" {
				t.Errorf("%+v", res)
			}
			if len(w.Writes()) != 1 {
				t.Errorf("%d effects", len(w.Writes()))
			}
		})
	}
}

// TestOAuth: tokens are fetched once and renewed when they expire or are revoked; a refused client
// is not retried.
func TestOAuth(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	useOAuth := func(c *servicenow.Config) {
		c.Auth = servicenow.Auth{
			OAuth: &servicenow.OAuth{ClientID: "client", ClientSecret: connector.Secret{Secret: "CLIENT"}},
		}
	}
	c := w.connector(t, useOAuth)
	res, err := c.Execute(t.Context(), w.update())
	if err != nil || strings.Contains(string(res.RequestMetadata), "token-") {
		t.Fatalf("%v, %s", err, res.RequestMetadata)
	}
	if err := c.Probe(t.Context()); err != nil {
		t.Error(err)
	}
	if n := w.RevokeTokens(); n != 1 {
		t.Errorf("%d tokens were fetched", n)
	}
	// The read before the write notices the revocation and fetches a new token.
	if _, err := c.Execute(t.Context(), w.call("work_note", `{"text":"x"}`)); err != nil {
		t.Error(err)
	}
	if n := w.RevokeTokens(); n != 1 {
		t.Errorf("%d tokens were valid, want 1", n)
	}
	// The token is revoked between the read and the write: the write is refused without an effect.
	// The next attempt has a new token.
	revoke := func(r *http.Request) snowtest.Fault {
		if r.Method == http.MethodGet {
			w.RevokeTokens()
		}
		return snowtest.Fault{}
	}
	w.fault.Store(&revoke)
	again := w.update()
	again.Target.Version, again.CurrentState, again.ProposedChange = "", `{"state":"2"}`, `{"state":"3"}`
	done := len(w.Writes())
	_, err = c.Execute(t.Context(), again)
	wantFailure(t, err, connector.Terminal, "http_401")
	w.mend()
	if len(w.Writes()) != done {
		t.Error("a refused call had an effect")
	}
	if _, err = c.Execute(t.Context(), again); err != nil || len(w.Writes()) != done+1 {
		t.Error(err)
	}

	short := newWorld(t, func(o *snowtest.Options) { o.TokenLife = 10 * time.Second })
	c = short.connector(t, useOAuth)
	for range 2 { // a token that expires within a minute is used only once
		if err := c.Probe(t.Context()); err != nil {
			t.Error(err)
		}
	}
	if n := short.RevokeTokens(); n != 4 {
		t.Errorf("%d tokens were fetched for 4 requests", n)
	}

	c = w.connector(t, func(cfg *servicenow.Config) {
		useOAuth(cfg)
		cfg.Auth.OAuth.ClientID = "nobody"
	})
	_, err = c.Execute(t.Context(), w.update())
	wantFailure(t, err, connector.Terminal, "token_refused")
	if e := failure(t, err); strings.Contains(e.Error()+e.Says, "secret-of-the-client") {
		t.Error("the secret is in the failure")
	}
}
