package rest

import (
	"context"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/connector"
)

// API is the JSON API of one system. After an answer 429 with a wait, it makes no call until the
// wait is over. It is safe for concurrent use.
type API struct {
	Client *http.Client
	Base   *url.URL
	// Header is sent with each request.
	Header http.Header
	// Credential returns the value of the Authorization header; "" sends none.
	Credential func(ctx context.Context) (string, *connector.Error)
	// Refused, if not nil, is called with a credential that was answered with 401. It reports
	// whether another credential is available.
	Refused func(credential string) bool

	hold Hold
}

// Ask makes a call that changes nothing. The call can be repeated, so its failures are never
// ambiguous; after a 401 it is repeated once if another credential is available.
func (a *API) Ask(ctx context.Context, method, path string, query url.Values) (*Answer, *connector.Error) {
	return a.AskWith(ctx, method, path, query, nil, "")
}

// AskWith is Ask with a body and additional headers, which override those of the API.
func (a *API) AskWith(
	ctx context.Context, method, path string, query url.Values, header http.Header, body gatehouse.JSON,
) (*Answer, *connector.Error) {
	for again := true; ; again = false {
		r, failed := a.request(ctx, method, path, query, body)
		if failed != nil {
			return nil, failed
		}
		for name := range header {
			r.Header.Set(name, header.Get(name))
		}
		answer, failed := a.send(ctx, r)
		if failed == nil && answer.Status == http.StatusUnauthorized && again && a.refused(r) {
			continue
		}
		return answer, ReadFailure(failed)
	}
}

// Do makes a call, once, with additional headers, which override those of the API. The result
// describes the request and its answer. If the failure happened before a request existed, the result
// is empty, and the failure is not_sent or terminal.
func (a *API) Do(
	ctx context.Context, method, path string, query url.Values, header http.Header, body gatehouse.JSON,
) (res connector.Result, answer *Answer, failed *connector.Error) {
	r, failed := a.request(ctx, method, path, query, body)
	if failed != nil {
		return res, nil, failed
	}
	for name := range header {
		r.Header.Set(name, header.Get(name))
	}
	answer, failed = a.send(ctx, r)
	res.RequestMetadata = r.Metadata()
	if failed != nil {
		return res, nil, failed
	}
	res.ResponseMetadata = answer.Metadata(answer.JSON())
	if answer.Status == http.StatusUnauthorized {
		a.refused(r) // the next attempt uses another credential
	}
	return res, answer, nil
}

// UseToken sends a token with each request, and another one after its refusal.
func (a *API) UseToken(t *Token) {
	a.Credential = func(ctx context.Context) (string, *connector.Error) {
		value, failed := t.Get(ctx)
		return "Bearer " + value, failed
	}
	a.Refused = func(credential string) bool { return t.Drop(strings.TrimPrefix(credential, "Bearer ")) }
}

func (a *API) refused(r *Request) bool {
	return a.Refused != nil && a.Refused(r.Header.Get("Authorization"))
}

// request makes a request; path is escaped and begins with a slash.
func (a *API) request(
	ctx context.Context, method, path string, query url.Values, body gatehouse.JSON,
) (*Request, *connector.Error) {
	if failed := a.hold.Failure(); failed != nil {
		return nil, failed
	}
	u := *a.Base
	u.RawPath = a.Base.EscapedPath() + path
	var err error
	if u.Path, err = url.PathUnescape(u.RawPath); err != nil {
		return nil, &connector.Error{
			Kind: connector.Terminal, Code: string(gatehouse.CodeInvalid), Detail: "the target makes an invalid path", Err: err,
		}
	}
	u.RawQuery = query.Encode()
	r := NewRequest(method, &u)
	r.Header = a.Header.Clone()
	if body != "" {
		r.SetJSON(body)
	}
	credential, failed := a.Credential(ctx)
	if failed != nil {
		return nil, failed
	}
	if credential != "" {
		r.SetSecret("Authorization", credential)
	}
	return r, nil
}

func (a *API) send(ctx context.Context, r *Request) (*Answer, *connector.Error) {
	answer, err := a.hold.Send(ctx, a.Client, r)
	if err != nil {
		return nil, Unanswered(ctx, err)
	}
	return answer, nil
}

// Hold blocks all calls for the given time.
func (a *API) Hold(d time.Duration) { a.hold.For(d) }

// Failure classifies an unsuccessful answer by its status alone: 429 is transient; 408, 425, 303,
// 5xx and a 2xx are ambiguous; other 3xx and 4xx are terminal.
func (a *Answer) Failure() *connector.Error {
	e := &connector.Error{
		Code: "http_" + strconv.Itoa(a.Status), Detail: a.Describe(), Says: a.Text(a.JSON()),
		RetryAfter: RetryAfter(a.Header),
	}
	switch s := a.Status; {
	case s == http.StatusTooManyRequests:
		e.Kind = connector.Transient
	case s == http.StatusRequestTimeout || s == http.StatusTooEarly:
		e.Kind = connector.Ambiguous
	case s == http.StatusSeeOther:
		// A 303 points to the result of an operation that was performed (RFC 9110, section 15.4.4).
		e.Kind, e.Code = connector.Ambiguous, "redirect"
	case s >= 300 && s < 400:
		e.Kind, e.Code, e.Detail = connector.Terminal, "redirect", a.Describe()+"; redirects are not followed"
	case s >= 400 && s < 500:
		e.Kind = connector.Terminal
	default:
		e.Kind = connector.Ambiguous
	}
	return e
}

// NothingSent turns the failure of a read that precedes a change into a failure of the change,
// which was not sent.
func NothingSent(e *connector.Error) *connector.Error {
	if e.Kind == connector.Ambiguous || e.Kind == connector.Transient {
		e.Kind = connector.NotSent
	}
	return e
}
