package gate

import (
	"context"
	"crypto/sha256"
	"errors"
	"strings"
	"unicode"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/usecase"
)

var (
	_ gatehouse.SessionService = (*Gate)(nil)
	_ gatehouse.BrowserService = (*Gate)(nil)
)

// The prefixes of the secrets that browsers hold.
const (
	sessionPrefix = "gts_"
	setupPrefix   = "gtu_"
)

// maxUserAgent bounds the stored name of a browser, in bytes.
const maxUserAgent = 256

// hashOf returns the hash by which a secret is found; ok is false when the text
// cannot be such a secret.
func hashOf(prefix, secret string) (hash [32]byte, ok bool) {
	if !strings.HasPrefix(secret, prefix) || len(secret) > 256 {
		return hash, false
	}
	return sha256.Sum256([]byte(secret)), true
}

func signInFirst() *gatehouse.Error {
	return gatehouse.E(gatehouse.CodeUnauthenticated, "sign in first")
}

// FindSession returns the caller of a session token.
func (g *Gate) FindSession(ctx context.Context, token string) (*gatehouse.Caller, error) {
	c, stale, err := g.lookUpSession(ctx, token)
	if err != nil || !stale {
		return c, err
	}
	if err := g.touch(ctx, c.Session); err != nil {
		// The session is valid; failing to record its use is not a reason to refuse.
		g.Log.WarnContext(ctx, "the last use of a session was not stored", "session", c.Session.ID, "error", err)
	}
	return c, nil
}

// PeekSession is FindSession without recording a use of the session. It is for requests that an open page sends by
// itself, which must not extend the session.
func (g *Gate) PeekSession(ctx context.Context, token string) (*gatehouse.Caller, error) {
	c, _, err := g.lookUpSession(ctx, token)
	return c, err
}

// lookUpSession finds a live session; stale is true when LastSeenAt is due for an
// update.
func (g *Gate) lookUpSession(ctx context.Context, token string) (c *gatehouse.Caller, stale bool, err error) {
	hash, ok := hashOf(sessionPrefix, token)
	if !ok {
		return nil, false, signInFirst()
	}
	var s *gatehouse.Session
	var p *gatehouse.Principal
	err = g.Store.ReadQueues(ctx, func(q gatehouse.ReadQueues) (err error) {
		if s, p, err = q.FindSession(hash); err != nil {
			return err
		}
		if !s.Live(q.Now()) || !maySignIn(p) {
			return gatehouse.ErrNotFound
		}
		stale = q.Now().Sub(s.LastSeenAt) >= gatehouse.SessionTouch
		return nil
	})
	switch {
	case errors.Is(err, gatehouse.ErrNotFound):
		return nil, false, signInFirst()
	case err != nil:
		return nil, false, err
	}
	return &gatehouse.Caller{Principal: p, StepUp: true, Session: s, Via: gatehouse.ViaConsole}, stale, nil
}

func (g *Gate) touch(ctx context.Context, s *gatehouse.Session) error {
	return g.Store.Update(ctx, s.Tenant, func(tx gatehouse.Tx) error {
		s.LastSeenAt = tx.Now()
		s.ExpiresAt = s.Expiry(s.LastSeenAt)
		return tx.TouchSession(s.ID, s.LastSeenAt, s.ExpiresAt)
	})
}

// maySignIn reports whether a principal can have sessions: agents and services
// never can.
func maySignIn(p *gatehouse.Principal) bool {
	return p.Kind == gatehouse.KindPerson && !p.Disabled && len(p.Roles) > 0
}

// signIn is a session about to begin.
type signIn struct {
	method     gatehouse.SignInMethod
	credential string
	browser    gatehouse.Browser
	token      string
	hash       [32]byte
}

// newSignIn generates the token: always a new one, whatever the browser sent.
func newSignIn(method gatehouse.SignInMethod, credential string, b gatehouse.Browser) *signIn {
	s := &signIn{method: method, credential: credential, browser: b}
	s.token, s.hash = newSecret(sessionPrefix)
	return s
}

// begin stores the session, and ends the browser's previous one.
func (n *signIn) begin(q gatehouse.Queues, p *gatehouse.Principal) (*gatehouse.SignedIn, error) {
	tx := q.In(p.Tenant)
	// Disabling a principal ends its sessions. Because of this lock, a concurrent
	// disabling either ends this session too, or comes first and prevents it.
	p, _, err := lockPrincipals(tx, p.ID, p.ID)
	if err != nil {
		return nil, err
	}
	if !maySignIn(p) {
		return nil, gatehouse.E(gatehouse.CodeUnauthenticated, "this principal cannot sign in")
	}

	if hash, ok := hashOf(sessionPrefix, n.browser.Previous); ok {
		old, _, err := tx.FindSession(hash)
		switch {
		case errors.Is(err, gatehouse.ErrNotFound):
		case err != nil:
			return nil, err
		case old.Live(tx.Now()):
			if err := endSession(q.In(old.Tenant), old, p.ID, "replaced"); err != nil {
				return nil, err
			}
			tx = q.In(p.Tenant)
		}
	}

	s := &gatehouse.Session{
		ID: NewID("ses"), Tenant: p.Tenant, PrincipalID: p.ID, Method: n.method, Credential: n.credential,
		UserAgent: cleanUserAgent(n.browser.UserAgent), CreatedAt: tx.Now(), LastSeenAt: tx.Now(),
	}
	s.ExpiresAt = s.Expiry(s.CreatedAt)
	if err := tx.InsertSession(s, n.hash); err != nil {
		return nil, err
	}
	err = tx.AppendLeaf(&gatehouse.Leaf{
		Tenant: p.Tenant, Type: "session.started", Subject: s.ID, Actor: p.ID,
		Data: usecase.Object(map[string]any{
			"principal": p.ID, "method": string(s.Method), "credential": s.Credential, "user_agent": s.UserAgent,
		}),
	})
	if err != nil {
		return nil, err
	}
	return &gatehouse.SignedIn{Session: s, Principal: p, Token: n.token}, nil
}

func cleanUserAgent(s string) string {
	s = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return -1
		}
		return r
	}, strings.ToValidUTF8(s, ""))
	if len(s) > maxUserAgent {
		s = strings.ToValidUTF8(s[:maxUserAgent], "")
	}
	return s
}

// endSession ends one session and records it.
func endSession(tx gatehouse.Tx, s *gatehouse.Session, by, reason string) error {
	if err := tx.RevokeSession(s.ID); err != nil {
		return err
	}
	return recordEnd(tx, s.Tenant, s.ID, s.PrincipalID, by, reason)
}

// endSessions ends a principal's sessions: all, or those that began with a credential. It
// also revokes expired ones, so that the server forgets their browsers (see DeviceToken).
func endSessions(tx gatehouse.Tx, p *gatehouse.Principal, credential, by, reason string) error {
	ids, err := tx.RevokeSessions(p.ID, credential)
	if err != nil {
		return err
	}
	for _, id := range ids {
		if err := recordEnd(tx, p.Tenant, id, p.ID, by, reason); err != nil {
			return err
		}
	}
	return nil
}

func recordEnd(tx gatehouse.LogWriter, tenant, id, principal, by, reason string) error {
	return tx.AppendLeaf(&gatehouse.Leaf{
		Tenant: tenant, Type: "session.revoked", Subject: id, Actor: by,
		Data: usecase.Object(map[string]any{"principal": principal, "reason": reason}),
	})
}

// browserCaller returns the caller, who must be a signed-in browser.
func browserCaller(ctx context.Context) (*gatehouse.Caller, error) {
	c, err := gatehouse.CallerFrom(ctx)
	if err != nil || c.Session == nil {
		return nil, signInFirst()
	}
	return c, nil
}

// SignOut ends the caller's session.
func (g *Gate) SignOut(ctx context.Context) error {
	c, err := browserCaller(ctx)
	if err != nil {
		return err
	}
	_, err = g.revokeSession(ctx, c, c.Session.ID, "signed out")
	return err
}

// ListSessions lists the caller's sessions, or, for an administrator, those of
// others.
func (g *Gate) ListSessions(
	ctx context.Context, f gatehouse.SessionFilter,
) (page gatehouse.Page[*gatehouse.Session], err error) {
	err = g.View(ctx, "principal", func(tx gatehouse.ReadTx, c *gatehouse.Caller) (err error) {
		id := "" // all principals
		if f.All {
			err = Require(c, gatehouse.RoleAdmin)
		} else {
			var p *gatehouse.Principal
			p, err = ownOrAdmins(tx, c, f.Principal)
			if err = usecase.NotFoundAs(err, "principal", f.Principal); err == nil {
				id = p.ID
			}
		}
		if err != nil {
			return err
		}
		page, err = tx.ListSessions(id, f.Ended, f.Cursor, f.Limit)
		return err
	})
	return page, err
}

// ownOrAdmins finds a principal, "" for the caller. Only an administrator may name
// another principal.
func ownOrAdmins(tx gatehouse.IdentityReader, c *gatehouse.Caller, idOrName string) (*gatehouse.Principal, error) {
	if idOrName == "" {
		return c.Principal, nil
	}
	p, err := tx.FindPrincipal(idOrName)
	if err != nil || p.ID == c.Principal.ID {
		return p, err
	}
	return p, Require(c, gatehouse.RoleAdmin)
}

// RevokeSession ends a session from the next request on, and forgets its browser, even if the
// session has expired.
func (g *Gate) RevokeSession(ctx context.Context, id string) (*gatehouse.Session, error) {
	c, err := gatehouse.CallerFrom(ctx)
	if err != nil {
		return nil, err
	}
	return g.revokeSession(ctx, c, id, "revoked")
}

func (g *Gate) revokeSession(
	ctx context.Context, c *gatehouse.Caller, id, reason string,
) (*gatehouse.Session, error) {
	out, err := usecase.Perform(ctx, g.Runner, usecase.Case{By: c}, func(tx gatehouse.Tx) (*gatehouse.Session, error) {
		s, err := tx.FindSessionByID(id)
		if err != nil {
			return nil, err
		}
		if s.PrincipalID != c.Principal.ID {
			if err := Require(c, gatehouse.RoleAdmin); err != nil {
				return nil, err
			}
		}
		if s.RevokedAt != nil {
			return s, nil
		}
		if err := endSession(tx, s, c.Principal.ID, reason); err != nil {
			return nil, err
		}
		s.RevokedAt = new(tx.Now())
		return s, nil
	})
	return out, usecase.NotFound(err, "session")
}
