package signin

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"

	"github.com/go-webauthn/webauthn/protocol"
	"github.com/go-webauthn/webauthn/webauthn"

	"github.com/gatehouse-dev/gatehouse"
)

const (
	kindPasskey = "passkey"
	// maxResponse bounds an authenticator's answer, maxPasskeyName a name, in
	// bytes.
	maxResponse    = 64 << 10
	maxPasskeyName = 100
)

func (s *Service) openPasskeys() (err error) {
	if s.config.Passkeys == nil {
		return nil
	}
	s.webauthn, err = webauthn.New(&webauthn.Config{
		RPID: s.config.Passkeys.RPID, RPDisplayName: "Gatehouse", RPOrigins: s.config.Passkeys.Origins,
		AttestationPreference: protocol.PreferNoAttestation,
		AuthenticatorSelection: protocol.AuthenticatorSelection{
			ResidentKey: protocol.ResidentKeyRequirementRequired, RequireResidentKey: protocol.ResidentKeyRequired(),
			UserVerification: protocol.VerificationRequired,
		},
	})
	if err != nil {
		return fmt.Errorf("signin: passkeys: %w", err)
	}
	return nil
}

func (s *Service) passkeys() error {
	if s.webauthn == nil {
		return gatehouse.E(gatehouse.CodeNotFound, "passkeys are not set up here")
	}
	return nil
}

// user is a principal in the library's form.
type user struct {
	p    *gatehouse.Principal
	keys []webauthn.Credential
}

// WebAuthnID is the user handle, which authenticators keep. It reveals nothing
// about the person (WebAuthn, 14.6.1).
func (u *user) WebAuthnID() []byte {
	sum := sha256.Sum256([]byte("gatehouse user\x00" + u.p.Tenant + "\x00" + u.p.ID))
	return sum[:]
}
func (u *user) WebAuthnName() string                       { return u.p.Name }
func (u *user) WebAuthnDisplayName() string                { return u.p.Name }
func (u *user) WebAuthnCredentials() []webauthn.Credential { return u.keys }

func newUser(p *gatehouse.Principal, keys ...*gatehouse.Passkey) (*user, error) {
	u := &user{p: p, keys: make([]webauthn.Credential, len(keys))}
	for i, k := range keys {
		if err := json.Unmarshal(k.Credential, &u.keys[i]); err != nil {
			return nil, fmt.Errorf("passkey %s: %w", k.ID, err)
		}
	}
	return u, nil
}

// own returns the caller with its passkeys.
func (s *Service) own(ctx context.Context) (*gatehouse.Caller, *user, []*gatehouse.Passkey, error) {
	c, err := signedIn(ctx)
	if err != nil {
		return nil, nil, nil, err
	}
	keys, err := s.dir.ListPasskeys(ctx, "")
	if err != nil {
		return nil, nil, nil, err
	}
	u, err := newUser(c.Principal, keys...)
	return c, u, keys, err
}

func (s *Service) challenge(
	ctx context.Context, m *ceremony, tenant, session string, options any,
) (*gatehouse.Challenge, error) {
	shown, err := json.Marshal(options)
	if err != nil {
		return nil, err
	}
	m.Kind = kindPasskey
	state, expires, err := s.begin(ctx, m, tenant, session)
	if err != nil {
		return nil, err
	}
	return &gatehouse.Challenge{Options: gatehouse.JSON(shown), State: state, ExpiresAt: expires}, nil
}

// BeginPasskeyRegistration begins adding a passkey of the caller.
func (s *Service) BeginPasskeyRegistration(ctx context.Context, name, editToken string) (*gatehouse.Challenge, error) {
	if err := s.passkeys(); err != nil {
		return nil, err
	}
	var v gatehouse.Violations
	v.CheckText("/name", name, maxPasskeyName)
	if err := v.Err(); err != nil {
		return nil, err
	}
	if name == "" {
		name = "Passkey"
	}
	c, u, _, err := s.own(ctx)
	if err != nil {
		return nil, err
	}
	if err := s.dir.CheckFresh(ctx, editToken); err != nil {
		return nil, err
	}
	made, session, err := s.webauthn.BeginRegistration(u,
		webauthn.WithExclusions(webauthn.Credentials(u.keys).CredentialDescriptors()))
	if err != nil {
		return nil, err
	}
	m := &ceremony{Purpose: purposeRegister, Session: session, Name: name}
	return s.challenge(ctx, m, c.Session.Tenant, c.Session.ID, made.Response)
}

// FinishPasskeyRegistration takes the authenticator's answer.
func (s *Service) FinishPasskeyRegistration(
	ctx context.Context, state string, response []byte,
) (*gatehouse.Passkey, error) {
	if err := s.passkeys(); err != nil {
		return nil, err
	}
	m, caller, err := s.take(ctx, state, kindPasskey, purposeRegister)
	if err != nil {
		return nil, err
	}
	if caller == nil {
		return nil, s.refuse(ctx, "nobody is signed in")
	}
	if len(response) > maxResponse {
		return nil, s.refuse(ctx, "the answer is too long")
	}
	parsed, err := protocol.ParseCredentialCreationResponseBytes(response)
	if err != nil {
		return nil, s.refuse(ctx, "the answer is not an attestation", "error", err)
	}
	u, err := newUser(caller.Principal)
	if err != nil {
		return nil, err
	}
	made, err := s.webauthn.CreateCredential(u, *m.Session, parsed)
	if err != nil {
		return nil, s.refuse(ctx, "the attestation is not valid", "error", err)
	}
	made.Attestation = webauthn.CredentialAttestation{} // of no use once verified
	data, err := json.Marshal(made)
	if err != nil {
		return nil, err
	}
	return s.dir.AddPasskey(ctx, &gatehouse.Passkey{
		Name: m.Name, CredentialID: made.ID, Credential: data, SignCount: made.Authenticator.SignCount,
	})
}

// BeginPasskeySignIn begins the sign-in of a person whom the answer will identify.
func (s *Service) BeginPasskeySignIn(ctx context.Context) (*gatehouse.Challenge, error) {
	if err := s.passkeys(); err != nil {
		return nil, err
	}
	asked, session, err := s.webauthn.BeginDiscoverableLogin(webauthn.WithUserVerification(protocol.VerificationRequired))
	if err != nil {
		return nil, err
	}
	return s.challenge(ctx, &ceremony{Purpose: purposeSignIn, Session: session}, "", "", asked.Response)
}

// FinishPasskeySignIn takes the authenticator's answer.
func (s *Service) FinishPasskeySignIn(
	ctx context.Context, state string, response []byte, b gatehouse.Browser,
) (*gatehouse.SignedIn, error) {
	if err := s.passkeys(); err != nil {
		return nil, err
	}
	m, _, err := s.take(ctx, state, kindPasskey, purposeSignIn)
	if err != nil {
		return nil, err
	}
	var key *gatehouse.Passkey
	owner := func(rawID, _ []byte) (webauthn.User, error) {
		k, p, err := s.dir.FindPasskey(ctx, rawID)
		if err != nil {
			return nil, err
		}
		key = k
		return newUser(p, k) // the library compares the answer's user handle with WebAuthnID
	}
	parsed, err := s.assertion(ctx, response)
	if err != nil {
		return nil, err
	}
	used, err := s.webauthn.ValidateDiscoverableLogin(owner, *m.Session, parsed)
	if err != nil {
		return nil, s.refuse(ctx, "the assertion is not valid", "error", err)
	}
	k, from, err := s.used(ctx, key, used)
	if err != nil {
		return nil, err
	}
	return s.dir.SignInPasskey(ctx, k, from, b)
}

// BeginPasskeyStepUp begins a step-up of the caller for one action with the digest that was shown.
func (s *Service) BeginPasskeyStepUp(
	ctx context.Context, actionID string, digest gatehouse.Digest,
) (*gatehouse.Challenge, error) {
	if err := s.passkeys(); err != nil {
		return nil, err
	}
	c, u, keys, err := s.own(ctx)
	if err != nil {
		return nil, err
	}
	if len(keys) == 0 {
		return nil, gatehouse.E(gatehouse.CodeNotFound, "you have no passkey yet: add one under Settings")
	}
	m := &ceremony{Purpose: purposeStepUp, ActionID: actionID, Digest: digest, Random: randomBytes()}
	asked, session, err := s.webauthn.BeginLogin(u, webauthn.WithChallenge(m.proof()),
		webauthn.WithUserVerification(protocol.VerificationRequired))
	if err != nil {
		return nil, err
	}
	m.Session = session
	return s.challenge(ctx, m, c.Session.Tenant, c.Session.ID, asked.Response)
}

// FinishPasskeyStepUp takes the authenticator's answer.
func (s *Service) FinishPasskeyStepUp(ctx context.Context, state string, response []byte) (*gatehouse.StepUp, error) {
	if err := s.passkeys(); err != nil {
		return nil, err
	}
	m, caller, err := s.take(ctx, state, kindPasskey, purposeStepUp)
	if err != nil {
		return nil, err
	}
	if caller == nil {
		return nil, s.refuse(ctx, "nobody is signed in")
	}
	_, u, keys, err := s.own(ctx)
	if err != nil {
		return nil, err
	}
	parsed, err := s.assertion(ctx, response)
	if err != nil {
		return nil, err
	}
	// Use the hash of the stored values, not the challenge as it was stored.
	m.Session.Challenge = encode(m.proof())
	used, err := s.webauthn.ValidateLogin(u, *m.Session, parsed)
	if err != nil {
		return nil, s.refuse(ctx, "the assertion is not valid", "error", err)
	}
	for _, key := range keys {
		if string(key.CredentialID) == string(used.ID) {
			k, from, err := s.used(ctx, key, used)
			if err != nil {
				return nil, err
			}
			return s.dir.StepUpPasskey(ctx, k, from, m.ActionID, m.Digest)
		}
	}
	return nil, s.refuse(ctx, "the passkey is not the caller's")
}

func (s *Service) assertion(ctx context.Context, response []byte) (*protocol.ParsedCredentialAssertionData, error) {
	if len(response) > maxResponse {
		return nil, s.refuse(ctx, "the answer is too long")
	}
	parsed, err := protocol.ParseCredentialRequestResponseBytes(response)
	if err != nil {
		return nil, s.refuse(ctx, "the answer is not an assertion", "error", err)
	}
	return parsed, nil
}

// used returns the row of a passkey after a verified use. A counter that did not increase
// indicates a copied passkey (WebAuthn, 6.1.1).
func (s *Service) used(
	ctx context.Context, key *gatehouse.Passkey, c *webauthn.Credential,
) (k *gatehouse.Passkey, from uint32, err error) {
	if c.Authenticator.CloneWarning {
		return nil, 0, s.refuse(ctx, "the passkey's counter went back: it may have been copied", "passkey", key.ID)
	}
	data, err := json.Marshal(c)
	if err != nil {
		return nil, 0, err
	}
	out := *key
	out.Credential, out.SignCount = data, c.Authenticator.SignCount
	return &out, key.SignCount, nil
}
