// Package idptest is an OpenID provider for tests: a real one, of zitadel/oidc, with a login page
// of two fields in front of it. It supports the authorization code flow with PKCE, nonces and
// userinfo; a test adds the people and the false claims in the tokens.
package idptest

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"sync"
	"time"

	"github.com/zitadel/oidc/v3/example/server/storage"
	"github.com/zitadel/oidc/v3/pkg/oidc"
	"github.com/zitadel/oidc/v3/pkg/op"
)

// Provider is the provider; it is an http.Handler for all of its pages. People
// and clients can be added at any time.
type Provider struct {
	*storage.Storage
	handler http.Handler

	mu      sync.Mutex
	people  map[string]*Person
	clients map[string]*client
}

// Person is somebody whom the provider knows.
type Person struct {
	// Subject is the provider's permanent id of the person; Username and Email are further claims of the
	// tokens.
	Subject, Username, Email string
	// Password is the password for the login page.
	Password string
	Groups   []string
	// Faults changes what the tokens say about the person; nil for true tokens.
	Faults *TokenFaults
}

// TokenFaults says how tokens depart from the truth. Several people may share one.
type TokenFaults struct {
	mu    sync.Mutex
	bare  bool
	mixUp bool
	spoil func(*Authentication)
}

// Bare leaves names and groups out of ID tokens: only userinfo has the groups.
func (t *TokenFaults) Bare() { t.mu.Lock(); defer t.mu.Unlock(); t.bare = true }

// MixUp makes userinfo return another subject.
func (t *TokenFaults) MixUp() { t.mu.Lock(); defer t.mu.Unlock(); t.mixUp = true }

// Spoil sets a function that changes the tokens' claims about an authentication; nil removes it.
func (t *TokenFaults) Spoil(fn func(*Authentication)) { t.mu.Lock(); defer t.mu.Unlock(); t.spoil = fn }

// Authentication is an authentication as the tokens describe it.
type Authentication struct {
	op.AuthRequest
	Nonce    string
	Audience []string
	At       time.Time
}

// GetNonce implements op.AuthRequest.
func (a *Authentication) GetNonce() string { return a.Nonce }

// GetAudience implements op.AuthRequest.
func (a *Authentication) GetAudience() []string { return a.Audience }

// GetAuthTime implements op.AuthRequest.
func (a *Authentication) GetAuthTime() time.Time { return a.At }

type client struct {
	*storage.Client
	secret string
}

// New makes a provider with a new key. The issuer is its own address.
func New(issuer string) (*Provider, error) {
	p := &Provider{people: make(map[string]*Person), clients: make(map[string]*client)}
	p.Storage = storage.NewStorageWithClients(users{p}, nil)
	c := &op.Config{CryptoKey: sha256.Sum256([]byte(issuer)), CodeMethodS256: true, AuthMethodPost: true}
	made, err := op.NewProvider(c, p, op.StaticIssuer(issuer), op.WithAllowInsecure(),
		op.WithLogger(slog.New(slog.DiscardHandler)))
	if err != nil {
		return nil, err
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /login/username", p.login)
	mux.HandleFunc("POST /login/username", p.authenticate)
	mux.Handle("/", made)
	p.handler = mux
	return p, nil
}

// Start makes a provider that serves on loopback until the process ends. One
// is enough for all tests of a package; making its key takes long.
func Start() (p *Provider, issuer string, err error) {
	var handler http.Handler
	server := httptest.NewServer(
		http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { handler.ServeHTTP(w, r) }))
	p, err = New(server.URL)
	handler = p
	return p, server.URL, err
}

// ServeHTTP serves the provider.
func (p *Provider) ServeHTTP(w http.ResponseWriter, r *http.Request) { p.handler.ServeHTTP(w, r) }

// Register adds a client, to whose callbacks the provider may send people back.
func (p *Provider) Register(id, secret string, callbacks ...string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.clients[id] = &client{storage.WebClient(id, secret, callbacks...), secret}
}

// Join registers a person, or replaces a registered one.
func (p *Provider) Join(who Person) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.people[who.Subject] = &who
}

// find returns a person, nil for nobody.
func (p *Provider) find(subject string) *Person {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.people[subject]
}

// GetClientByClientID implements op.Storage.
func (p *Provider) GetClientByClientID(_ context.Context, id string) (op.Client, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if c := p.clients[id]; c != nil {
		return c.Client, nil
	}
	return nil, errors.New("no such client")
}

// AuthorizeClientIDSecret implements op.Storage.
func (p *Provider) AuthorizeClientIDSecret(_ context.Context, id, secret string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if c := p.clients[id]; c != nil && subtle.ConstantTimeCompare([]byte(c.secret), []byte(secret)) == 1 {
		return nil
	}
	return errors.New("no such client, or another secret")
}

// SetUserinfoFromRequest makes the ID token's claims.
func (p *Provider) SetUserinfoFromRequest(_ context.Context, u *oidc.UserInfo, r op.IDTokenRequest, _ []string) error {
	who := p.find(r.GetSubject())
	u.Subject = r.GetSubject()
	if t := who.Faults; t != nil {
		t.mu.Lock()
		defer t.mu.Unlock()
		if t.bare {
			return nil
		}
	}
	u.AppendClaims("groups", who.Groups)
	u.AppendClaims("preferred_username", who.Username)
	u.AppendClaims("email", who.Email)
	return nil
}

// SetUserinfoFromToken makes the claims of userinfo.
func (p *Provider) SetUserinfoFromToken(ctx context.Context, u *oidc.UserInfo, id, subject, origin string) error {
	if err := p.Storage.SetUserinfoFromToken(ctx, u, id, subject, origin); err != nil {
		return err
	}
	who := p.find(subject)
	if t := who.Faults; t != nil {
		t.mu.Lock()
		defer t.mu.Unlock()
		if t.mixUp {
			u.Subject = "somebody-else"
		}
	}
	u.AppendClaims("groups", who.Groups)
	return nil
}

// AuthRequestByCode returns the authentication of a code, changed by Spoil.
func (p *Provider) AuthRequestByCode(ctx context.Context, code string) (op.AuthRequest, error) {
	r, err := p.Storage.AuthRequestByCode(ctx, code)
	if err != nil {
		return nil, err
	}
	t := p.find(r.GetSubject()).Faults
	if t == nil {
		return r, nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.spoil == nil {
		return r, nil
	}
	a := &Authentication{r, r.GetNonce(), r.GetAudience(), r.GetAuthTime()}
	t.spoil(a)
	return a, nil
}

// users is the storage's view of the people: they log in by subject.
type users struct{ p *Provider }

// GetUserByID implements storage.UserStore.
func (u users) GetUserByID(id string) *storage.User {
	if who := u.p.find(id); who != nil {
		return &storage.User{ID: who.Subject, Username: who.Username, Password: who.Password, Email: who.Email,
			EmailVerified: true}
	}
	return nil
}

// GetUserByUsername implements storage.UserStore.
func (u users) GetUserByUsername(subject string) *storage.User { return u.GetUserByID(subject) }

// ExampleClientID implements storage.UserStore.
func (users) ExampleClientID() string { return "service" }
