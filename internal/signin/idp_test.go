package signin_test

import (
	"net/http"
	"net/url"
	"sync"
	"testing"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/signin/idptest"
)

const (
	clientID     = "gatehouse"
	clientSecret = "s3cret"
	otherClient  = "other"
)

// idp manages one test's people at the provider that all tests share. They log in without the login
// page.
type idp struct {
	*idptest.Provider
	idptest.TokenFaults
	t      *testing.T
	issuer string
}

type started struct {
	*idptest.Provider
	issuer string
}

var shared = sync.OnceValue(func() started {
	p, issuer, err := idptest.Start()
	if err != nil {
		panic(err)
	}
	back := publicURL + gatehouse.CallbackPath
	p.Register(clientID, clientSecret, back)
	p.Register(otherClient, clientSecret, back)
	return started{p, issuer}
})

func newIDP(t *testing.T) *idp {
	t.Helper()
	s := shared()
	return &idp{Provider: s.Provider, issuer: s.issuer, t: t}
}

// subject is a person's unique subject at the provider: no two tests share one.
func (i *idp) subject(name string) string { return i.t.Name() + "#" + name }

// join registers a person with groups at the provider.
func (i *idp) join(name, username, email string, groups ...string) {
	i.Join(idptest.Person{Subject: i.subject(name), Username: username, Password: "p", Email: email, Groups: groups,
		Faults: &i.TokenFaults})
}

// follow follows a redirect, logs the person in, and returns the query of the redirect back.
func (i *idp) follow(to, name string) url.Values {
	i.t.Helper()
	login := i.next(to)
	id := login.Query().Get("authRequestID")
	if id == "" {
		i.t.Fatalf("no login page, but %s", login)
	}
	if err := i.CheckUsernamePassword(i.subject(name), "p", id); err != nil {
		i.t.Fatal(err)
	}
	back := i.next(i.issuer + "/authorize/callback?id=" + id)
	if back.Scheme+"://"+back.Host+back.Path != publicURL+gatehouse.CallbackPath {
		i.t.Fatalf("back at %s", back)
	}
	return back.Query()
}

func (i *idp) next(from string) *url.URL {
	i.t.Helper()
	client := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	r, err := http.NewRequestWithContext(i.t.Context(), http.MethodGet, from, nil)
	if err != nil {
		i.t.Fatal(err)
	}
	res, err := client.Do(r)
	if err != nil {
		i.t.Fatal(err)
	}
	_ = res.Body.Close()
	to, err := res.Location()
	if err != nil {
		i.t.Fatalf("%s: %s", from, res.Status)
	}
	return to
}
