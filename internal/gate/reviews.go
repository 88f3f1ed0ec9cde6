package gate

import (
	"context"
	"errors"
	"time"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/link"
	"github.com/gatehouse-dev/gatehouse/internal/usecase"
)

// ReviewLink returns the link for a mail to the recipient, and creates the review
// if there is none. It returns nil if no master key is configured, if the action has no
// approval, and if the review has expired. It is for the notifier, and needs no caller.
func (g *Gate) ReviewLink(
	ctx context.Context, a *gatehouse.Action, recipient *gatehouse.Principal,
) (out *gatehouse.ReviewLink, err error) {
	if g.config.Master == nil || a.Approval == nil {
		return nil, nil
	}
	err = g.Update(ctx, a.Tenant, nil, func(tx gatehouse.Tx) error {
		out = nil
		k, secret, err := g.linkKey(tx, a.Tenant)
		if err != nil {
			return err
		}
		v, err := tx.FindReviewOf(a.Approval.ID, recipient.ID)
		if errors.Is(err, gatehouse.ErrNotFound) {
			v, err = g.newReview(tx, a, recipient)
		}
		if err != nil || !tx.Now().Before(v.ExpiresAt) {
			return err
		}
		level, err := g.linkLevel(tx, a)
		if err != nil {
			return err
		}
		out = &gatehouse.ReviewLink{ID: v.ID, ExpiresAt: v.ExpiresAt, Token: link.Sign(secret, claimsOf(v, a, k.Number))}
		if a.RiskLevel <= level {
			out.Code = link.Code(secret, v.ID)
		}
		return nil
	})
	return out, err
}

// linkKey returns the active key that signs a tenant's links, and the opened key. It makes a
// new key if there is none, or if the master key of the active one is not configured.
func (g *Gate) linkKey(tx gatehouse.Tx, tenant string) (*gatehouse.RingKey, []byte, error) {
	k, err := activeRingKey(tx, gatehouse.RingLinks)
	if err == nil && (k == nil || !g.config.Master.Has(k.Master)) {
		k, err = g.rotate(tx, tenant, k, author{id: initAuthor})
	}
	if err != nil {
		return nil, nil, err
	}
	secret, err := g.ringSecret(k)
	return k, secret, err
}

func (g *Gate) newReview(tx gatehouse.Tx, a *gatehouse.Action, to *gatehouse.Principal) (*gatehouse.Review, error) {
	v := &gatehouse.Review{
		ID: NewID("rev"), Tenant: a.Tenant, ActionID: a.ID, ApprovalID: a.Approval.ID, Recipient: to.ID,
		CreatedAt: tx.Now(), ExpiresAt: tx.Now().Add(g.config.LinkTTL),
	}
	if end := a.Approval.End(); end.Before(v.ExpiresAt) {
		v.ExpiresAt = end
	}
	if err := tx.InsertReview(v); err != nil {
		return nil, err
	}
	return v, tx.AppendLeaf(&gatehouse.Leaf{
		Tenant: a.Tenant, Type: "review.created", Subject: v.ID, ActionID: a.ID, Actor: initAuthor, Digest: a.Digest,
		Data: usecase.Object(map[string]any{
			"approval": v.ApprovalID, "recipient": v.Recipient, "expires_at": v.ExpiresAt,
		}),
	})
}

// claimsOf returns the claims of a review's token. The token expires in the same
// second as the review.
func claimsOf(v *gatehouse.Review, a *gatehouse.Action, key uint32) link.Claims {
	return link.Claims{
		Key: key, Purpose: link.Review, Tenant: v.Tenant, Subject: v.ID, Digest: a.Digest, Recipient: v.Recipient,
		Expires: v.ExpiresAt, Task: a.Callback.TaskHash(),
	}
}

// linkLevel returns the highest risk level at which a recipient can decide by link without a sign-in: the lower of
// the levels of the policy that judged the action and of the active policy.
func (g *Gate) linkLevel(tx gatehouse.PolicyReader, a *gatehouse.Action) (gatehouse.RiskLevel, error) {
	active, version, _, err := g.activePolicy(tx, a.Tenant)
	if err != nil || active == nil {
		return 0, err
	}
	level := active.DecideByLink()
	if version == a.Policy.Version {
		return level, nil
	}
	judged, err := g.policyVersion(tx, a.Tenant, a.Policy.Version)
	if err != nil || judged == nil {
		return 0, err
	}
	return min(level, judged.DecideByLink()), nil
}

func badToken(format string, args ...any) *gatehouse.Error {
	return gatehouse.E(gatehouse.CodeBadToken, format, args...)
}

// openedReview is a review whose token has been verified.
type openedReview struct {
	gatehouse.OpenReview
	token  *link.Token
	key    *gatehouse.RingKey
	secret []byte
	action *gatehouse.Action
	// noRight is the reason why the recipient may not decide, nil if they may.
	noRight error
}

// verify finds the key that a token names, and checks the MAC before any other
// lookup.
func (g *Gate) verify(ctx context.Context, id, token string) (*openedReview, error) {
	wrong := badToken("this is not a link of Gatehouse, or it was cut off: open it from the mail again")
	t, err := link.Parse(token)
	if err != nil {
		return nil, wrong
	}
	var k *gatehouse.RingKey
	err = g.Store.ReadQueues(ctx, func(q gatehouse.ReadQueues) (err error) {
		k, err = q.FindRingKey(t.Key())
		return err
	})
	if errors.Is(err, gatehouse.ErrNotFound) {
		return nil, wrong
	}
	if err != nil {
		return nil, err
	}
	secret, err := g.ringSecret(k)
	if err != nil {
		g.Log.WarnContext(ctx, "link key not opened: is its master key configured?", "key", k.ID, "master", k.Master)
		return nil, wrong
	}
	if !t.Verify(secret) || !t.About(link.Review, id) {
		return nil, wrong
	}
	return &openedReview{token: t, key: k, secret: secret}, nil
}

// open verifies a link and determines the state of its review.
func (g *Gate) open(ctx context.Context, id, token, device string) (*openedReview, error) {
	o, err := g.verify(ctx, id, token)
	if err != nil {
		return nil, err
	}
	caller, err := gatehouse.CallerFrom(ctx)
	if err != nil {
		caller = nil
	}
	err = g.Store.View(ctx, o.key.Tenant, func(tx gatehouse.ReadTx) error {
		fresh := &openedReview{token: o.token, secret: o.secret}
		o = fresh
		return g.readReview(tx, o, id, caller, device)
	})
	if errors.Is(err, gatehouse.ErrNotFound) {
		return nil, badToken("this link's review no longer exists")
	}
	if err != nil {
		return nil, err
	}
	return o, nil
}

// readReview reads the rows that the token names and determines the review's state.
func (g *Gate) readReview(
	tx gatehouse.ReadTx, o *openedReview, id string, caller *gatehouse.Caller, device string,
) (err error) {
	if o.key, err = tx.FindRingKey(o.token.Key()); err != nil {
		return err
	}
	v, err := tx.FindReview(id)
	if err != nil {
		return err
	}
	o.Review = *v
	if o.action, err = tx.FindAction(v.ActionID); err != nil {
		return err
	}
	if o.Person, err = tx.FindPrincipal(v.Recipient); err != nil {
		return err
	}
	if o.action.Approval == nil || !o.token.HasClaims(claimsOf(v, o.action, o.key.Number)) {
		return badToken("this link is for something else")
	}
	other := caller != nil && (caller.Principal.Tenant != v.Tenant || caller.Principal.ID != v.Recipient)
	o.noRight = g.mayAnswer(tx, o.action, o.Person)
	if o.State, o.Detail = o.state(tx.Now(), other, caller); o.State == gatehouse.ReviewRevoked ||
		o.State == gatehouse.ReviewNotYours {
		return nil
	}
	o.Action = o.action
	if err := g.recognize(tx, o, caller, device); err != nil || o.State != gatehouse.ReviewPending {
		return err
	}
	if own := o.action.Approval.VoteOf(o.Person.Person); own != nil {
		o.Detail = "You have voted: " + string(own.Decision) + "."
		return nil
	}
	if o.action.RiskLevel > gatehouse.L3 {
		o.Detail = o.action.RiskLevel.String() + " is not decided by a link: open it in Gatehouse."
		return nil
	}
	return g.proofs(tx, o)
}

// state returns the state of a review, and the reason.
func (o *openedReview) state(now time.Time, other bool, caller *gatehouse.Caller) (gatehouse.ReviewState, string) {
	a := o.action
	switch {
	case o.key.StateAt(now) == gatehouse.RingKeyRevoked:
		return gatehouse.ReviewRevoked, "An administrator has revoked the key of this link."
	case other:
		return gatehouse.ReviewNotYours, "This link was sent to " + o.Person.Name + ". You are signed in as " +
			caller.Principal.Name + "."
	case o.noRight != nil:
		return gatehouse.ReviewNotYours, o.Person.Name + " may not decide this."
	case a.Status == gatehouse.StatusSuperseded:
		return gatehouse.ReviewSuperseded, "A newer revision has taken its place."
	case a.Status == gatehouse.StatusExpired,
		a.Status == gatehouse.StatusPending && !now.Before(a.Approval.End()):
		return gatehouse.ReviewExpired, "Nobody decided in time."
	case a.Status != gatehouse.StatusPending, a.Approval.RejectsAt != nil:
		return gatehouse.ReviewDecided, ""
	case !now.Before(o.token.Expires()), !o.key.Accepted(now):
		return gatehouse.ReviewExpired, "The link is too old. The approval still waits in Gatehouse."
	}
	return gatehouse.ReviewPending, ""
}

// recognize determines whether the caller or the device belongs to the recipient.
func (g *Gate) recognize(tx gatehouse.ReadTx, o *openedReview, caller *gatehouse.Caller, device string) error {
	if caller != nil {
		o.Recognized = gatehouse.ProofSession
	} else if device != "" {
		known, err := g.knownDevice(tx, &o.Review, device)
		if known {
			o.Recognized = gatehouse.ProofDevice
		}
		return err
	}
	return nil
}

// proofs sets Proofs to the accepted proofs, and Proven to the proof that the caller has given.
func (g *Gate) proofs(tx gatehouse.PolicyReader, o *openedReview) error {
	o.Proofs = []gatehouse.ReviewProof{gatehouse.ProofSession}
	if o.Recognized == gatehouse.ProofSession {
		o.Proven = o.Recognized
	}
	level, err := g.linkLevel(tx, o.action)
	if err != nil || o.action.RiskLevel > level {
		return err
	}
	o.Proofs, o.Proven = append(o.Proofs, gatehouse.ProofDevice), o.Recognized
	if o.Tries < gatehouse.MaxCodeTries {
		o.Proofs = append(o.Proofs, gatehouse.ProofCode)
	}
	return nil
}

// OpenReview returns a review, and changes nothing.
func (g *Gate) OpenReview(ctx context.Context, id, token, device string) (*gatehouse.OpenReview, error) {
	o, err := g.open(ctx, id, token, device)
	if err != nil {
		return nil, err
	}
	if o.Action != nil {
		if err := g.readComments(ctx, o.Action); err != nil {
			return nil, err
		}
	}
	return &o.OpenReview, nil
}

// ReviewOpened records the first time that the recipient's browser opens the review.
func (g *Gate) ReviewOpened(ctx context.Context, id, token, device string) error {
	o, err := g.open(ctx, id, token, device)
	if err != nil {
		return err
	}
	if o.State == gatehouse.ReviewRevoked || o.State == gatehouse.ReviewNotYours {
		return gatehouse.E(gatehouse.CodeSignInRequired, "%s", o.Detail)
	}
	if o.Recognized == "" {
		return gatehouse.E(gatehouse.CodeSignInRequired, "nobody has signed in as %s in this browser", o.Person.Name)
	}
	err = g.Update(ctx, o.Tenant, nil, func(tx gatehouse.Tx) error {
		if err := tx.MarkReviewOpened(id); err != nil {
			return err
		}
		return tx.AppendLeaf(&gatehouse.Leaf{
			Tenant: o.Tenant, Type: "review.opened", Subject: id, ActionID: o.ActionID, Actor: o.Recipient,
			Digest: o.action.Digest, Data: usecase.Object(map[string]any{"proof": string(o.Recognized)}),
		})
	})
	if errors.Is(err, gatehouse.ErrConflict) {
		return nil // recorded before
	}
	return err
}
