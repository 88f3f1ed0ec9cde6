package signin

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/go-webauthn/webauthn/webauthn"
	"golang.org/x/time/rate"

	"github.com/gatehouse-dev/gatehouse"
)

// Directory is what signin tells what it has proven.
type Directory interface {
	// BeginCeremony stores a ceremony and sets its ExpiresAt; TakeCeremony
	// takes it out, unauthenticated when it is not there or over.
	BeginCeremony(ctx context.Context, c *gatehouse.Ceremony) error
	TakeCeremony(ctx context.Context, hash [32]byte) (*gatehouse.Ceremony, error)
	// CheckFresh is step_up_required unless the caller may add a means of
	// signing in.
	CheckFresh(ctx context.Context, editToken string) error

	SignInExternal(ctx context.Context, e gatehouse.ExternalSignIn, b gatehouse.Browser) (*gatehouse.SignedIn, error)
	LinkIdentity(ctx context.Context, tenant, issuer, subject string) (*gatehouse.ExternalIdentity, error)
	StepUpExternal(ctx context.Context, issuer, subject, actionID string, digest gatehouse.Digest) (*gatehouse.StepUp, error)

	// FindPasskey finds by the authenticator's id; not_found.
	FindPasskey(ctx context.Context, credentialID []byte) (*gatehouse.Passkey, *gatehouse.Principal, error)
	ListPasskeys(ctx context.Context, principal string) ([]*gatehouse.Passkey, error)
	AddPasskey(ctx context.Context, k *gatehouse.Passkey) (*gatehouse.Passkey, error)
	// SignInPasskey and StepUpPasskey store the passkey's new counter, guarded
	// by the one that was read.
	SignInPasskey(ctx context.Context, k *gatehouse.Passkey, from uint32, b gatehouse.Browser) (*gatehouse.SignedIn, error)
	StepUpPasskey(ctx context.Context, k *gatehouse.Passkey, from uint32, actionID string, digest gatehouse.Digest) (*gatehouse.StepUp, error)
}

// Config says what can be signed in with. The zero value is nothing.
type Config struct {
	// PublicURL is how browsers reach the server, such as
	// https://gate.example.com; providers send them back there.
	PublicURL string
	Providers []Provider
	// Passkeys is nil for none.
	Passkeys *Passkeys
	// HTTP reaches the providers; by default a client that gives up after ten
	// seconds and follows no redirect.
	HTTP *http.Client
	// Now is the clock that tokens are judged by; time.Now by default.
	Now func() time.Time
	// BeginsPerSecond bounds what strangers begin; 20 by default, 5 times that
	// at once.
	BeginsPerSecond float64
}

// Provider is an OIDC provider.
type Provider struct {
	Name, Issuer, ClientID, ClientSecret string
	// Scopes are asked for besides openid; profile by default.
	Scopes []string
	// GroupsClaim names the claim with the groups; groups by default.
	GroupsClaim string
	// NameClaim names a new person; preferred_username by default.
	NameClaim string
	// Roles maps a group to its roles; nil leaves the roles alone.
	Roles map[string][]gatehouse.Role
	// Groups maps a group to groups of the tenant, which policies can ask.
	Groups map[string][]string
	// Tenant is where the provider's people are; default by default.
	Tenant string
	// Provision makes persons of unknown identities whose groups give a role.
	Provision bool
}

// Passkeys is the relying party: RPID is a domain, Origins are those of which
// a browser may say that it is there.
type Passkeys struct {
	RPID    string
	Origins []string
}

// Service implements gatehouse.SignInService.
type Service struct {
	config    Config
	dir       Directory
	log       *slog.Logger
	providers map[string]*provider
	webauthn  *webauthn.WebAuthn
	strangers *rate.Limiter
}

var _ gatehouse.SignInService = (*Service)(nil)

// leeway is how far the clocks of two machines may be apart.
const leeway = time.Minute

// New makes a service. It asks no provider for anything yet.
func New(config Config, dir Directory, log *slog.Logger) (*Service, error) {
	if config.Now == nil {
		config.Now = time.Now
	}
	if config.HTTP == nil {
		config.HTTP = &http.Client{
			Timeout:       10 * time.Second,
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		}
	}
	if config.BeginsPerSecond == 0 {
		config.BeginsPerSecond = 20
	}
	s := &Service{
		config: config, dir: dir, log: log, providers: make(map[string]*provider, len(config.Providers)),
		strangers: rate.NewLimiter(rate.Limit(config.BeginsPerSecond), max(1, int(5*config.BeginsPerSecond))),
	}
	for i := range config.Providers {
		p := &config.Providers[i]
		if s.providers[p.Name] != nil {
			return nil, errors.New("signin: two providers are named " + gatehouse.Quote(p.Name))
		}
		s.providers[p.Name] = newProvider(*p, config)
	}
	return s, s.openPasskeys()
}

// Options tells what can be signed in with.
func (s *Service) Options() gatehouse.SignInOptions {
	o := gatehouse.SignInOptions{Passkeys: s.webauthn != nil}
	if o.Passkeys {
		o.PasskeyOrigins = s.config.Passkeys.Origins
	}
	for _, p := range s.config.Providers {
		o.Providers = append(o.Providers, gatehouse.SignInProvider{Name: p.Name, Issuer: p.Issuer})
	}
	return o
}

// The purposes of ceremonies.
const (
	purposeSignIn   = "sign_in"
	purposeLink     = "link"
	purposeRegister = "register"
	purposeStepUp   = "step_up"
)

// ceremony is what is remembered between question and answer.
type ceremony struct {
	// Kind is oidc or passkey, Purpose what for.
	Kind    string `json:"kind"`
	Purpose string `json:"purpose"`
	// ActionID, Digest and Random are those of a step-up.
	ActionID string           `json:"action_id,omitempty"`
	Digest   gatehouse.Digest `json:"digest,omitempty"`
	Random   []byte           `json:"random,omitempty"`

	// Of OIDC.
	Provider string    `json:"provider,omitempty"`
	Verifier string    `json:"verifier,omitempty"`
	Nonce    string    `json:"nonce,omitempty"`
	ReturnTo string    `json:"return_to,omitempty"`
	BegunAt  time.Time `json:"begun_at,omitzero"`

	// Of passkeys.
	Session *webauthn.SessionData `json:"session,omitempty"`
	Name    string                `json:"name,omitempty"`
}

// proof is the hash that a step-up's answer has to carry.
func (c *ceremony) proof() []byte {
	h := sha256.New()
	h.Write([]byte("gatehouse step-up v1\x00"))
	h.Write(c.Random)
	h.Write([]byte(c.ActionID + "\x00" + string(c.Digest)))
	return h.Sum(nil)
}

func randomBytes() []byte {
	b := make([]byte, 32)
	_, _ = rand.Read(b) // never fails (crypto/rand, Go 1.24)
	return b
}

func encode(b []byte) string { return base64.RawURLEncoding.EncodeToString(b) }

// begin stores a ceremony of the caller, or of a stranger, and returns the
// browser's secret.
func (s *Service) begin(ctx context.Context, c *ceremony, tenant, session string) (state string, expires time.Time, err error) {
	if session == "" && !s.strangers.Allow() {
		e := gatehouse.E(gatehouse.CodeRateLimited, "too many people sign in at this moment; try again")
		e.RetryAfter = 1
		return "", time.Time{}, e
	}
	data, err := json.Marshal(c)
	if err != nil {
		return "", time.Time{}, err
	}
	state = encode(randomBytes())
	row := &gatehouse.Ceremony{Hash: sha256.Sum256([]byte(state)), Tenant: tenant, SessionID: session, Data: data}
	err = s.dir.BeginCeremony(ctx, row)
	return state, row.ExpiresAt, err
}

// take takes a ceremony of a kind out. One that a signed-in person began is
// answered in the same session; caller is nil for a stranger's.
func (s *Service) take(ctx context.Context, state, kind string, purposes ...string) (c *ceremony, caller *gatehouse.Caller, err error) {
	row, err := s.dir.TakeCeremony(ctx, sha256.Sum256([]byte(state)))
	if err != nil {
		return nil, nil, err
	}
	c = new(ceremony)
	if err := json.Unmarshal(row.Data, c); err != nil {
		return nil, nil, err
	}
	if c.Kind != kind || len(purposes) > 0 && c.Purpose != purposes[0] {
		return nil, nil, s.refuse(ctx, "the ceremony is another", "kind", c.Kind, "purpose", c.Purpose)
	}
	if row.SessionID == "" {
		return c, nil, nil
	}
	caller, err = signedIn(ctx)
	if err != nil || caller.Session.ID != row.SessionID || caller.Session.Tenant != row.Tenant {
		return nil, nil, s.refuse(ctx, "the ceremony was begun in another session")
	}
	return c, caller, nil
}

func signedIn(ctx context.Context) (*gatehouse.Caller, error) {
	c, err := gatehouse.CallerFrom(ctx)
	if err != nil || c.Session == nil {
		return nil, gatehouse.E(gatehouse.CodeUnauthenticated, "sign in first")
	}
	return c, nil
}

// refuse says no without saying why; the log does.
func (s *Service) refuse(ctx context.Context, why string, args ...any) error {
	s.log.WarnContext(ctx, "sign-in refused: "+why, args...)
	return gatehouse.E(gatehouse.CodeUnauthenticated, "this could not be verified: begin again").Because(errors.New(why))
}

func same(a, b string) bool { return subtle.ConstantTimeCompare([]byte(a), []byte(b)) == 1 }

// localPath returns a path of this server, "/" for anything else.
func localPath(p string) string {
	u, err := url.Parse(p)
	if err != nil || u.IsAbs() || u.Host != "" || u.User != nil || !strings.HasPrefix(p, "/") || strings.HasPrefix(p, "//") ||
		strings.ContainsAny(p, "\\\r\n\t") {
		return "/"
	}
	return p
}
