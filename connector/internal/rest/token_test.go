package rest

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gatehouse-dev/gatehouse/connector"
)

// endpoint gives tokens that live for an hour; each request takes a second.
type endpoint struct {
	given int
	fails bool
}

func (e *endpoint) token() *Token {
	return &Token{Fetch: func(context.Context) (string, time.Time, *connector.Error) {
		time.Sleep(time.Second)
		if e.fails {
			return "", time.Time{}, &connector.Error{Kind: connector.NotSent, Code: "token_refused"}
		}
		e.given++
		return fmt.Sprint(e.given), time.Now().Add(time.Hour), nil
	}}
}

func want(t *testing.T, token *Token, value string) {
	t.Helper()
	if got, failed := token.Get(t.Context()); got != value || (failed != nil) != (value == "") {
		t.Errorf("at %s: token %q, %v, want %q", time.Now().Format(time.TimeOnly), got, failed, value)
	}
}

// TestTokenIsFetchedOnce: callers that need a token at the same time share one request.
func TestTokenIsFetchedOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var e endpoint
		token := e.token()
		var callers sync.WaitGroup
		for range 20 {
			callers.Go(func() { want(t, token, "1") })
		}
		callers.Wait()
		token.Drop("another")
		want(t, token, "1")
		token.Drop("1")
		want(t, token, "2")
	})
}

// TestTokensAreReplacedAtDifferentTimes: replicas that start together do not all ask at once.
func TestTokensAreReplacedAtDifferentTimes(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var e endpoint
		times := map[time.Duration]bool{}
		for range 20 {
			token := e.token()
			if _, failed := token.Get(t.Context()); failed != nil {
				t.Fatal(failed)
			}
			left := token.expires.Sub(token.renew)
			if times[left] = true; left < renewMargin || left > renewMargin+6*time.Minute+time.Second {
				t.Errorf("it is replaced %s before its end", left)
			}
		}
		if len(times) < 10 {
			t.Errorf("20 tokens are replaced at %d times", len(times))
		}
	})
}

// TestTokenOutlivesItsEndpoint: while the endpoint gives no other, a token is used until its end.
func TestTokenOutlivesItsEndpoint(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var e endpoint
		token := e.token()
		want(t, token, "1")
		e.fails = true
		time.Sleep(59*time.Minute + 30*time.Second)
		want(t, token, "1")
		before := time.Now()
		want(t, token, "1") // without a request
		if time.Since(before) > 0 {
			t.Error("the endpoint is asked again at once")
		}
		time.Sleep(30 * time.Second)
		want(t, token, "")
		e.fails = false
		want(t, token, "2")
	})
}

// TestUseToken: the refusal of a token that was used before is worth another attempt; the refusal of a new token is
// final.
func TestUseToken(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var e endpoint
		var a API
		a.UseToken(e.token())
		for _, want := range []struct {
			uses  int
			again bool
		}{{2, true}, {1, false}} {
			var credential string
			for range want.uses {
				credential, _ = a.Credential(t.Context())
			}
			if again := a.Refused(credential); again != want.again {
				t.Errorf("%s was refused after %d uses: another attempt %t", credential, want.uses, again)
			}
		}
	})
}

// TestTokenLifetime: expires_in is a number of seconds, in any form.
func TestTokenLifetime(t *testing.T) {
	t.Parallel()
	for value, want := range map[string]time.Duration{
		"3600": time.Hour, "3600.0": time.Hour, "3.6e3": time.Hour, `"3600"`: time.Hour, "1e9": 24 * time.Hour,
		"0": 0, "-1": 0, "1e999": 0, `"soon"`: 0,
	} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			fmt.Fprintf(w, `{"access_token":"a","expires_in":%s}`, value)
		}))
		u, err := url.Parse(server.URL)
		if err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		token, expires, failed := FetchToken(t.Context(), server.Client(), u, "", nil)
		server.Close()
		if want == 0 {
			if failed == nil {
				t.Errorf("expires_in %s is accepted", value)
			}
		} else if life := expires.Sub(began); failed != nil || token != "a" || life < want || life > want+time.Minute {
			t.Errorf("expires_in %s: token %q for %s, %v", value, token, life, failed)
		}
	}
}
