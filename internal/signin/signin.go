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

// Directory stores the results of ceremonies.
type Directory interface {
	// BeginCeremony stores a ceremony and sets its ExpiresAt. TakeCeremony removes and returns
	// it; unauthenticated if it is missing or expired.
	BeginCeremony(ctx context.Context, c *gatehouse.Ceremony) error
	TakeCeremony(ctx context.Context, hash [32]byte) (*gatehouse.Ceremony, error)
	// CheckFresh fails with step_up_required unless the caller may add a method of signing in.
	CheckFresh(ctx context.Context, editToken string) error

	SignInExternal(ctx context.Context, e gatehouse.ExternalSignIn, b gatehouse.Browser) (*gatehouse.SignedIn, error)
	LinkIdentity(ctx context.Context, tenant, issuer, subject string) (*gatehouse.ExternalIdentity, error)
	StepUpExternal(ctx context.Context, issuer, subject, actionID string, digest gatehouse.Digest) (*gatehouse.StepUp,
		error)

	// FindPasskey finds a passkey and its owner by the credential ID; not_found for none.
	FindPasskey(ctx context.Context, credentialID []byte) (*gatehouse.Passkey, *gatehouse.Principal, error)
	ListPasskeys(ctx context.Context, principal string) ([]*gatehouse.Passkey, error)
	AddPasskey(ctx context.Context, k *gatehouse.Passkey) (*gatehouse.Passkey, error)
	// SignInPasskey and StepUpPasskey store the passkey's new counter if the stored counter is still
	// from.
	SignInPasskey(ctx context.Context, k *gatehouse.Passkey, from uint32, b gatehouse.Browser) (*gatehouse.SignedIn, error)
	StepUpPasskey(ctx context.Context, k *gatehouse.Passkey, from uint32, actionID string,
		digest gatehouse.Digest) (*gatehouse.StepUp, error)
}

// Config configures the methods of signing in. The zero value has none.
type Config struct {
	// PublicURL is the server's address for browsers, such as https://gate.example.com;
	// providers redirect to it.
	PublicURL string
	Providers []Provider
	// Passkeys is nil for none.
	Passkeys *Passkeys
	// HTTP calls the providers; by default a client with a limit of ten seconds that follows no
	// redirect.
	HTTP *http.Client
	// Now is the clock for the expiry of tokens; time.Now by default.
	Now func() time.Time
	// BeginsPerSecond bounds the ceremonies that anonymous clients begin; 20 by default, with
	// bursts of five times that.
	BeginsPerSecond float64
}

// Provider is an OIDC provider.
type Provider struct {
	Name, Issuer, ClientID, ClientSecret string
	// Scopes are requested in addition to openid; profile by default.
	Scopes []string
	// GroupsClaim names the claim with the groups; groups by default.
	GroupsClaim string
	// NameClaim is the claim with the name for a new person; preferred_username by default.
	NameClaim string
	// Roles maps a group to its roles; nil leaves roles unchanged.
	Roles map[string][]gatehouse.Role
	// Groups maps a group to groups of the tenant, from which policies can require approvals.
	Groups map[string][]string
	// Tenant is the tenant of the provider's people; "" means [gatehouse.DefaultTenant].
	Tenant string
	// Provision creates persons for unknown identities whose groups give a role.
	Provision bool
}

// Passkeys is the relying party: RPID is a domain, Origins are the origins that browsers may
// report.
type Passkeys struct {
	RPID    string
	Origins []string
}

// Service implements gatehouse.SignInService.
type Service struct {
	config           Config
	dir              Directory
	log              *slog.Logger
	providers        map[string]*provider
	webauthn         *webauthn.WebAuthn
	anonymousLimiter *rate.Limiter
}

var _ gatehouse.SignInService = (*Service)(nil)

// leeway is the permitted difference between the clocks of two machines.
const leeway = time.Minute

// New returns a service. It sends no request to a provider yet.
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
		anonymousLimiter: rate.NewLimiter(rate.Limit(config.BeginsPerSecond), max(1, int(5*config.BeginsPerSecond))),
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

// Options returns the available methods of signing in.
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

// ceremony is the stored state between challenge and response.
type ceremony struct {
	// Kind is oidc or passkey, Purpose the purpose of the ceremony.
	Kind    string `json:"kind"`
	Purpose string `json:"purpose"`
	// ActionID, Digest and Random belong to a step-up.
	ActionID string           `json:"action_id,omitempty"`
	Digest   gatehouse.Digest `json:"digest,omitempty"`
	Random   []byte           `json:"random,omitempty"`

	// For OIDC.
	Provider string    `json:"provider,omitempty"`
	Verifier string    `json:"verifier,omitempty"`
	Nonce    string    `json:"nonce,omitempty"`
	ReturnTo string    `json:"return_to,omitempty"`
	BegunAt  time.Time `json:"begun_at,omitzero"`

	// For passkeys.
	Session *webauthn.SessionData `json:"session,omitempty"`
	Name    string                `json:"name,omitempty"`
}

// proof is the hash that the response to a step-up must contain.
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

// begin stores a ceremony of the caller, or of an anonymous client, and returns the browser's
// secret.
func (s *Service) begin(
	ctx context.Context, c *ceremony, tenant, session string,
) (state string, expires time.Time, err error) {
	if session == "" && !s.anonymousLimiter.Allow() {
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

// take removes and returns a ceremony of a kind and, unless purpose is "", of that purpose. A
// ceremony that a signed-in person began must be answered in the same session. If an anonymous client
// began the ceremony, caller is nil.
func (s *Service) take(
	ctx context.Context, state, kind, purpose string,
) (c *ceremony, caller *gatehouse.Caller, err error) {
	row, err := s.dir.TakeCeremony(ctx, sha256.Sum256([]byte(state)))
	if err != nil {
		return nil, nil, err
	}
	c = new(ceremony)
	if err := json.Unmarshal(row.Data, c); err != nil {
		return nil, nil, err
	}
	if c.Kind != kind || purpose != "" && c.Purpose != purpose {
		return nil, nil, s.refuse(ctx, "the ceremony has another purpose", "kind", c.Kind, "purpose", c.Purpose)
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

// refuse returns an error without the reason, and logs the reason.
func (s *Service) refuse(ctx context.Context, why string, args ...any) error {
	s.log.WarnContext(ctx, "sign-in refused: "+why, args...)
	return gatehouse.E(gatehouse.CodeUnauthenticated, "this could not be verified: begin again").Because(errors.New(why))
}

func same(a, b string) bool { return subtle.ConstantTimeCompare([]byte(a), []byte(b)) == 1 }

// localPath returns a path of this server, "/" for anything else.
func localPath(p string) string {
	u, err := url.Parse(p)
	if err != nil || u.IsAbs() || u.Host != "" || u.User != nil || !strings.HasPrefix(p, "/") ||
		strings.HasPrefix(p, "//") ||
		strings.ContainsAny(p, "\\\r\n\t") {
		return "/"
	}
	return p
}
