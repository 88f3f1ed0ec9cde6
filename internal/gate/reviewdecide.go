package gate

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/link"
	"github.com/gatehouse-dev/gatehouse/internal/usecase"
)

// DecideReview makes the decision of a review link's recipient. It requires a proof that the
// caller is the recipient, and then calls Decide.
func (g *Gate) DecideReview(
	ctx context.Context, id, token string, d gatehouse.ReviewDecision,
) (*gatehouse.Answer, error) {
	o, err := g.open(ctx, id, token, d.Device)
	if err != nil {
		return nil, err
	}
	if err := o.refusal(); err != nil {
		return nil, err
	}
	proof, err := g.proof(ctx, o, d.Code)
	if err != nil {
		return nil, err
	}
	c := &gatehouse.Caller{
		Principal: o.Person, StepUp: true, Via: gatehouse.ViaLink,
		Link: &gatehouse.LinkProof{Review: id, Key: o.key.Number, Proof: proof},
	}
	if caller, err := gatehouse.CallerFrom(ctx); err == nil {
		c.Session = caller.Session
	}
	answer, err := g.Decide(gatehouse.NewContext(ctx, c), o.ActionID, gatehouse.Decision{
		Decision: d.Decision, Notes: d.Reason, Digest: o.action.Digest,
	})
	if err == nil && (answer.Code == gatehouse.AlreadyApproved || answer.Code == gatehouse.AlreadyRejected) {
		return nil, alreadyDecided(answer.Action)
	}
	return answer, err
}

// refusal returns the reason why the recipient cannot decide the review; nil for none.
func (o *openedReview) refusal() error {
	switch o.State {
	case gatehouse.ReviewRevoked:
		return badToken("%s", o.Detail)
	case gatehouse.ReviewNotYours:
		if o.noRight != nil {
			return o.noRight
		}
		return gatehouse.E(gatehouse.CodeSignInRequired, "%s", o.Detail)
	case gatehouse.ReviewExpired:
		return gatehouse.E(gatehouse.CodeLinkExpired, "%s", o.Detail).With("expires_at", o.ExpiresAt)
	case gatehouse.ReviewDecided, gatehouse.ReviewSuperseded:
		return alreadyDecided(o.action)
	}
	if len(o.Proofs) == 0 {
		return gatehouse.E(gatehouse.CodeSignInRequired, "%s", o.Detail)
	}
	return nil
}

// proof determines the proof that the caller is the recipient. A well-formed code is counted as a try before it is
// compared, so that concurrent requests together compare at most [gatehouse.MaxCodeTries] codes.
func (g *Gate) proof(ctx context.Context, o *openedReview, typed string) (gatehouse.ReviewProof, error) {
	if o.Proven != "" {
		return o.Proven, nil
	}
	byCode := slices.Contains(o.Proofs, gatehouse.ProofCode)
	code := link.ReadCode(typed)
	switch {
	case !byCode && typed != "" && o.Tries >= gatehouse.MaxCodeTries:
		return "", gatehouse.E(gatehouse.CodeSignInRequired, "too many wrong codes: sign in as %s", o.Person.Name)
	case !byCode:
		return "", gatehouse.E(gatehouse.CodeSignInRequired, "the link opens the page; deciding needs a sign-in as %s",
			o.Person.Name)
	case typed == "":
		return "", gatehouse.E(gatehouse.CodeSignInRequired, "deciding needs the code of the mail, or a sign-in as %s",
			o.Person.Name)
	case code == "":
		return "", gatehouse.E(gatehouse.CodeSignInRequired, "this is not a code: the code in the mail has six letters "+
			"and digits")
	}
	err := g.Store.Update(ctx, o.Tenant, func(tx gatehouse.Tx) error { return tx.CountReviewTry(o.ID) })
	if errors.Is(err, gatehouse.ErrConflict) {
		return "", gatehouse.E(gatehouse.CodeSignInRequired, "too many wrong codes: sign in as %s", o.Person.Name)
	}
	if err != nil {
		return "", err
	}
	if !link.SameCode(code, link.Code(o.secret, o.ID)) {
		return "", gatehouse.E(gatehouse.CodeSignInRequired, "this is not the code of the mail; %d of %d tries are left",
			max(0, gatehouse.MaxCodeTries-o.Tries-1), gatehouse.MaxCodeTries)
	}
	return gatehouse.ProofCode, nil
}

// checkLinkKey fails when the key of the decision's link has been revoked meanwhile.
func checkLinkKey(tx gatehouse.ReadTx, c *gatehouse.Caller) error {
	if c.Link == nil {
		return nil
	}
	k, err := tx.FindRingKey(c.Link.Key)
	if err != nil && !errors.Is(err, gatehouse.ErrNotFound) {
		return err
	}
	if err != nil || !k.Accepted(tx.Now()) || k.Tenant != c.Principal.Tenant {
		return badToken("the key of this link was revoked or has expired")
	}
	return nil
}

// logReviewCompleted records that a decision came by a link.
func (r *ruling) logReviewCompleted(tx gatehouse.LogWriter) error {
	l := r.caller.Link
	if l == nil || r.priorDecision || r.replayed {
		return nil
	}
	return tx.AppendLeaf(&gatehouse.Leaf{
		Tenant: r.action.Tenant, Type: "review.completed", Subject: l.Review, ActionID: r.action.ID,
		Actor: r.caller.Principal.ID, Digest: r.action.Digest,
		Data: usecase.Object(map[string]any{
			"decision": r.decision.Decision, "result": r.code, "proof": string(l.Proof),
		}),
	})
}

// usedNonces keeps used nonces until they expire.
type usedNonces struct {
	mu   sync.Mutex
	used map[string]time.Time
}

// take reports whether the nonce was unused, and marks it as used.
func (u *usedNonces) take(nonce string, now time.Time) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.used == nil {
		u.used = make(map[string]time.Time)
	}
	for n, at := range u.used {
		if now.Sub(at) > 2*link.NonceTTL {
			delete(u.used, n)
		}
	}
	if _, known := u.used[nonce]; known {
		return false
	}
	u.used[nonce] = now
	return true
}

// ReviewNonce makes the nonce of one form, bound to a cookie.
func (g *Gate) ReviewNonce(ctx context.Context, id, token, cookie string) (string, error) {
	o, err := g.verify(ctx, id, token)
	if err != nil {
		return "", err
	}
	now, err := g.now(ctx)
	return link.Nonce(o.secret, id, cookie, now), err
}

// TakeReviewNonce consumes the nonce of a form: this process accepts the nonce only once. Another process may accept
// it again, which is harmless, because an action is decided only once.
func (g *Gate) TakeReviewNonce(ctx context.Context, id, token, cookie, nonce string) error {
	o, err := g.verify(ctx, id, token)
	if err != nil {
		return err
	}
	now, err := g.now(ctx)
	if err != nil {
		return err
	}
	if !link.CheckNonce(o.secret, nonce, id, cookie, now) || !g.nonces.take(nonce, now) {
		return gatehouse.E(gatehouse.CodeSignInRequired, "the page was open for too long, or was sent before: nothing was "+
			"decided. Try again")
	}
	return nil
}

func (g *Gate) now(ctx context.Context) (now time.Time, err error) {
	err = g.Store.ViewQueues(ctx, func(q gatehouse.ReadQueues) error {
		now = q.Now()
		return nil
	})
	return now, err
}

// deviceSeparator separates the session's id from the token in a device token.
const deviceSeparator = "."

// DeviceToken returns a token for the browser of a session. It also identifies the browser after the session has
// expired. It is "" if this server has no key to sign it.
func (g *Gate) DeviceToken(ctx context.Context, s *gatehouse.Session) (string, error) {
	if g.config.Master == nil {
		return "", nil
	}
	var k *gatehouse.RingKey
	err := g.Store.View(ctx, s.Tenant, func(tx gatehouse.ReadTx) (err error) {
		k, err = activeRingKey(tx, gatehouse.RingLinks)
		return err
	})
	if err != nil || k == nil {
		return "", err
	}
	secret, err := g.ringSecret(k)
	if err != nil {
		return "", nil //nolint:nilerr // without the key no device is recognized; all else works
	}
	return s.ID + deviceSeparator + link.Sign(secret, deviceClaims(s, k.Number, s.CreatedAt.Add(gatehouse.DeviceTTL))), nil
}

func deviceClaims(s *gatehouse.Session, key uint32, expires time.Time) link.Claims {
	return link.Claims{
		Key: key, Purpose: link.Device, Tenant: s.Tenant, Subject: s.ID, Recipient: s.PrincipalID, Expires: expires,
	}
}

// knownDevice reports whether the recipient of a review has signed in with this
// browser, in a session that nobody has revoked.
func (g *Gate) knownDevice(tx gatehouse.ReadTx, v *gatehouse.Review, device string) (bool, error) {
	id, text, ok := strings.Cut(device, deviceSeparator)
	t, err := link.Parse(text)
	if !ok || err != nil || !t.About(link.Device, id) {
		return false, nil //nolint:nilerr // not a device token
	}
	k, err := tx.FindRingKey(t.Key())
	if err == nil {
		var secret []byte
		if secret, err = g.ringSecret(k); err != nil || !t.Verify(secret) || k.Tenant != v.Tenant ||
			!k.Accepted(tx.Now()) || !tx.Now().Before(t.Expires()) {
			return false, nil //nolint:nilerr // a key that cannot be opened verifies no token
		}
		var s *gatehouse.Session
		if s, err = tx.FindSessionByID(id); err == nil {
			return s.RevokedAt == nil && s.PrincipalID == v.Recipient &&
				t.HasClaims(deviceClaims(s, k.Number, t.Expires())), nil
		}
	}
	if errors.Is(err, gatehouse.ErrNotFound) {
		return false, nil
	}
	return false, err
}
