package gate

import (
	"context"
	"errors"
	"time"

	"github.com/gatehouse-dev/gatehouse"
)

// Previewer is an optional ability of Targets. It asks a target what an action would
// do, and has no effect there.
type Previewer interface {
	// Previews reports whether an action can be previewed. It makes no call.
	Previews(a *gatehouse.Action) bool
	Preview(ctx context.Context, a *gatehouse.Action) (gatehouse.Preview, error)
}

// The limits for previews, which cost a target more than a read.
const (
	// previewMaxAge is how long callers share the result of a preview.
	previewMaxAge = 5 * time.Second
	// previewsAtOnce is the number of concurrent previews of one connector. It is below
	// the number of connections that a connector has for its changes.
	previewsAtOnce = 2
)

type previews = ReadCache[gatehouse.Preview]

func newPreviews(patience time.Duration) *previews {
	return &previews{MaxAge: previewMaxAge, Timeout: patience, Slots: previewsAtOnce}
}

// CanPreview reports whether [Gate.Preview] can ask the target of an action. It makes
// no call.
func (g *Gate) CanPreview(a *gatehouse.Action) bool {
	p, ok := g.targets.(Previewer)
	return ok && a.Status == gatehouse.StatusPending && p.Previews(a)
}

// MayPreview reports whether a principal may preview the actions that it sees. Programs may not:
// they could propose changes just to read a target.
func MayPreview(p *gatehouse.Principal) bool {
	return p.Kind == gatehouse.KindPerson && (p.Has(gatehouse.RoleApprover) || p.Has(gatehouse.RoleOperator) ||
		p.Has(gatehouse.RoleAdmin) || p.Has(gatehouse.RoleAuditor))
}

// Preview asks the target of a pending action what effect the action would have. It waits at most
// [Config.CheckTimeout], decides nothing, and changes nothing. When the target does not answer, the error has code
// busy.
func (g *Gate) Preview(ctx context.Context, id string) (*gatehouse.Preview, error) {
	c, err := gatehouse.CallerFrom(ctx)
	if err != nil {
		return nil, err
	}
	a, err := g.FindAction(ctx, id)
	if err != nil {
		return nil, err
	}
	if err := Require(c, gatehouse.RoleApprover, gatehouse.RoleOperator, gatehouse.RoleAdmin,
		gatehouse.RoleAuditor); err != nil {
		return nil, err
	}
	if !MayPreview(c.Principal) {
		return nil, gatehouse.E(gatehouse.CodeRoleRequired, "programs cannot preview actions")
	}
	if !g.CanPreview(a) {
		return &gatehouse.Preview{None: "this action cannot be previewed"}, nil
	}
	p, at, err := g.previews.Get(ctx, a.Connector, a.Tenant+"/"+a.ID, time.Now,
		func(ctx context.Context) (gatehouse.Preview, error) { return g.targets.(Previewer).Preview(ctx, a) })
	if err != nil {
		return nil, g.notPreviewed(a, err)
	}
	if p.None == "" {
		p.AskedAt = at.UTC()
	}
	return &p, nil
}

// notPreviewed maps an error of a preview to an error for clients.
func (g *Gate) notPreviewed(a *gatehouse.Action, err error) error {
	g.Log.Warn("no preview", "action", a.ID, "error", err)
	var known *gatehouse.Error
	if errors.As(err, &known) {
		return err
	}
	e := gatehouse.E(gatehouse.CodeBusy, "the target did not answer the preview; try again").Because(err)
	e.RetryAfter = 30
	return e
}
