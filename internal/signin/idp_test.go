package signin_test

import (
	"context"
	"crypto/sha256"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"sync"
	"testing"
	"time"

	"github.com/zitadel/oidc/v3/example/server/storage"
	"github.com/zitadel/oidc/v3/pkg/oidc"
	"github.com/zitadel/oidc/v3/pkg/op"

	"github.com/gatehouse-dev/gatehouse"
)

const (
	clientID     = "gatehouse"
	clientSecret = "s3cret"
	otherClient  = "other"
)

// idp is a test's people at a real OIDC provider, which all tests share: only
// its login page is missing, a test logs in by hand.
type idp struct {
	*provider
	t *testing.T

	mu sync.Mutex
	// inToken puts the groups into the ID token; else userinfo tells them.
	inToken bool
	// mixUp makes userinfo tell about another subject.
	mixUp bool
	// spoil changes what the tokens say.
	spoil func(*spoiled)
}

// provider knows people by subjects that no two tests share.
type provider struct {
	*storage.Storage
	server *httptest.Server

	mu     sync.Mutex
	people map[string]*person
}

type person struct {
	storage.User
	groups []string
	of     *idp
}

// shared starts the provider: its key takes long to make.
var shared = sync.OnceValue(func() *provider {
	i := &provider{people: make(map[string]*person)}
	back := publicURL + gatehouse.CallbackPath
	i.Storage = storage.NewStorageWithClients(i, map[string]*storage.Client{
		clientID:    storage.WebClient(clientID, clientSecret, back),
		otherClient: storage.WebClient(otherClient, clientSecret, back),
	})
	var handler http.Handler
	i.server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { handler.ServeHTTP(w, r) }))
	c := &op.Config{CryptoKey: sha256.Sum256([]byte("test")), CodeMethodS256: true, AuthMethodPost: true}
	p, err := op.NewProvider(c, i, op.StaticIssuer(i.server.URL), op.WithAllowInsecure(), op.WithLogger(slog.New(slog.DiscardHandler)))
	if err != nil {
		panic(err)
	}
	handler = p
	return i
})

func newIDP(t *testing.T) *idp { return &idp{provider: shared(), t: t, inToken: true} }

// subject is a test's person as the provider knows it.
func (i *idp) subject(name string) string { return i.t.Name() + "#" + name }

// find returns a person and the test that it belongs to.
func (p *provider) find(subject string) *person {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.people[subject]
}

// spoiled is an authentication as the tokens tell it.
type spoiled struct {
	op.AuthRequest
	nonce    string
	audience []string
	at       time.Time
}

func (s *spoiled) GetNonce() string       { return s.nonce }
func (s *spoiled) GetAudience() []string  { return s.audience }
func (s *spoiled) GetAuthTime() time.Time { return s.at }

// join makes a person known, with groups.
func (i *idp) join(name, username, email string, groups ...string) {
	id := i.subject(name)
	i.provider.mu.Lock()
	defer i.provider.mu.Unlock()
	i.people[id] = &person{storage.User{ID: id, Username: username, Password: "p", Email: email, EmailVerified: true}, groups, i}
}

// GetUserByID implements storage.UserStore.
func (p *provider) GetUserByID(id string) *storage.User {
	if who := p.find(id); who != nil {
		return &who.User
	}
	return nil
}

// GetUserByUsername implements storage.UserStore; here one logs in by subject.
func (p *provider) GetUserByUsername(subject string) *storage.User { return p.GetUserByID(subject) }

// ExampleClientID implements storage.UserStore.
func (p *provider) ExampleClientID() string { return "service" }

// SetUserinfoFromRequest makes the ID token's claims.
func (p *provider) SetUserinfoFromRequest(_ context.Context, u *oidc.UserInfo, r op.IDTokenRequest, _ []string) error {
	who := p.find(r.GetSubject())
	who.of.mu.Lock()
	defer who.of.mu.Unlock()
	u.Subject = r.GetSubject()
	if who.of.inToken {
		u.AppendClaims("groups", who.groups)
		u.AppendClaims("preferred_username", who.Username)
		u.AppendClaims("email", who.Email)
	}
	return nil
}

// SetUserinfoFromToken makes userinfo's.
func (p *provider) SetUserinfoFromToken(ctx context.Context, u *oidc.UserInfo, id, subject, origin string) error {
	if err := p.Storage.SetUserinfoFromToken(ctx, u, id, subject, origin); err != nil {
		return err
	}
	who := p.find(subject)
	who.of.mu.Lock()
	defer who.of.mu.Unlock()
	if who.of.mixUp {
		u.Subject = "somebody-else"
	}
	u.AppendClaims("groups", who.groups)
	return nil
}

// AuthRequestByCode tells how a person authenticated.
func (p *provider) AuthRequestByCode(ctx context.Context, code string) (op.AuthRequest, error) {
	r, err := p.Storage.AuthRequestByCode(ctx, code)
	if err != nil {
		return nil, err
	}
	of := p.find(r.GetSubject()).of
	of.mu.Lock()
	defer of.mu.Unlock()
	if of.spoil == nil {
		return r, nil
	}
	s := &spoiled{r, r.GetNonce(), r.GetAudience(), r.GetAuthTime()}
	of.spoil(s)
	return s, nil
}

// follow goes where a redirect leads, logs the person in, and returns the
// query with which the browser comes back.
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
	back := i.next(i.server.URL + "/authorize/callback?id=" + id)
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
