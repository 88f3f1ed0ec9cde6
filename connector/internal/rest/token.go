package rest

import (
	"context"
	"encoding/json"
	"math/rand/v2"
	"net/http"
	"net/url"
	"regexp"
	"sync"
	"time"

	"github.com/gatehouse-dev/gatehouse/connector"
)

const (
	// renewMargin is the minimum time between the planned replacement of a token and its expiry.
	renewMargin = time.Minute
	// fetchRetryPause is the pause after a failed attempt to fetch the next token, if the present token is
	// valid for longer than this pause.
	fetchRetryPause = 10 * time.Second
	// defaultLifetime is the assumed lifetime of a token if the token endpoint names none.
	defaultLifetime = 5 * time.Minute
)

// tokenForm matches a token that a header can hold.
var tokenForm = regexp.MustCompile(`^[!-~]+$`)

// Token is an access token that is fetched when needed, by one caller at a time, and kept in memory
// until shortly before its expiry. Each process has its own: see docs/decisions/0016-access-tokens.md.
// Replicas that have started together replace theirs at different times.
type Token struct {
	// Fetch returns a new token and its expiry.
	Fetch func(ctx context.Context) (token string, expires time.Time, failed *connector.Error)

	turn    chan struct{}
	once    sync.Once
	token   string
	given   int // how often token was returned
	expires time.Time
	renew   time.Time // from then on, Get fetches the next token
}

// Get returns a valid token. A failure proves that nothing was changed: it is not_sent or terminal.
func (t *Token) Get(ctx context.Context) (string, *connector.Error) {
	if failed := t.take(ctx); failed != nil {
		return "", failed
	}
	defer t.release()
	now := time.Now()
	if t.token != "" && now.Before(t.renew) {
		t.given++
		return t.token, nil
	}
	token, expires, failed := t.Fetch(ctx)
	switch {
	case failed != nil && t.token != "" && time.Until(t.expires) > fetchRetryPause:
		t.renew = time.Now().Add(fetchRetryPause)
		t.given++
		return t.token, nil
	case failed != nil:
		return "", NothingSent(failed)
	}
	early := renewMargin
	if tenth := expires.Sub(now) / 10; tenth > 0 {
		early += rand.N(tenth)
	}
	t.token, t.given, t.expires, t.renew = token, 1, expires, expires.Add(-early)
	return token, nil
}

// Drop forgets a refused token, unless the token has been replaced meanwhile. It reports whether
// another token may be accepted: true if the token has been replaced, or if Get has returned it more
// than once; false if the refused call is the only one that has used it.
func (t *Token) Drop(token string) bool {
	if t.take(context.Background()) != nil {
		return false
	}
	defer t.release()
	if t.token != token {
		return true
	}
	t.token = ""
	return t.given > 1
}

func (t *Token) take(ctx context.Context) *connector.Error {
	t.once.Do(func() { t.turn = make(chan struct{}, 1) })
	select {
	case t.turn <- struct{}{}:
		return nil
	case <-ctx.Done():
		return &connector.Error{
			Kind: connector.NotSent, Code: "timeout", Detail: "the time ran out before there was an access token",
		}
	}
}

func (t *Token) release() { <-t.turn }

// FetchToken calls a token endpoint (RFC 6749, section 4.4), without retries. authorization is the
// value of the Authorization header, "" for none. The header, the form and the answer contain
// secrets; a failure does not repeat them.
func FetchToken(
	ctx context.Context, client *http.Client, u *url.URL, authorization string, form url.Values,
) (string, time.Time, *connector.Error) {
	r := NewRequest(http.MethodPost, u)
	if authorization != "" {
		r.SetSecret("Authorization", authorization)
	}
	r.Header.Set("Accept", "application/json")
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.Body, r.HasBody = []byte(form.Encode()), true
	a, err := Send(ctx, client, r)
	if err != nil {
		return "", time.Time{}, Unanswered(ctx, err)
	}
	if a.Status != http.StatusOK {
		failed := a.Failure()
		failed.Code, failed.Detail, failed.Says = "token_refused", "no access token: "+a.Describe(), ""
		if form.Has("client_assertion") && a.Status < 500 {
			a.ClockSkew(failed)
		}
		return "", time.Time{}, failed
	}
	var got struct {
		AccessToken string      `json:"access_token"`
		ExpiresIn   json.Number `json:"expires_in"`
	}
	err = json.Unmarshal(a.Body, &got)
	seconds, errSeconds := defaultLifetime.Seconds(), error(nil)
	if got.ExpiresIn != "" {
		seconds, errSeconds = got.ExpiresIn.Float64()
	}
	if err != nil || errSeconds != nil || !tokenForm.MatchString(got.AccessToken) || seconds <= 0 {
		return "", time.Time{}, &connector.Error{
			Kind:   connector.NotSent,
			Code:   "token_refused",
			Detail: "the answer of the token endpoint has no valid access token",
		}
	}
	return got.AccessToken, time.Now().Add(time.Duration(min(seconds, 86400) * float64(time.Second))), nil
}
