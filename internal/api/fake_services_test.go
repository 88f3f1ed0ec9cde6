package api

import (
	"context"
	"strconv"
	"time"

	"github.com/gatehouse-dev/gatehouse"
)

type (
	actionPage    = gatehouse.Page[*gatehouse.Action]
	mirrorPage    = gatehouse.Page[*gatehouse.AppliedMirror]
	corpusPage    = gatehouse.Page[*gatehouse.CorpusEntry]
	pushPage      = gatehouse.Page[*gatehouse.Push]
	letterPage    = gatehouse.Page[*gatehouse.DeadLetter]
	principalPage = gatehouse.Page[*gatehouse.Principal]
	sessionPage   = gatehouse.Page[*gatehouse.Session]
)

func (f *fake) Propose(ctx context.Context, p *gatehouse.Proposal) (*gatehouse.Action, bool, error) {
	a, err := use[*gatehouse.Action](ctx, f, "Propose", "", p)
	return a, p.IdempotencyKey == "known", err
}

func (f *fake) FindAction(ctx context.Context, id string) (*gatehouse.Action, error) {
	return use[*gatehouse.Action](ctx, f, "FindAction", id, id)
}

func (f *fake) WaitAction(
	ctx context.Context, id string, wait time.Duration, until gatehouse.Until,
) (*gatehouse.Action, error) {
	return use[*gatehouse.Action](ctx, f, "WaitAction", id, id, wait, until)
}

func (f *fake) WaitAsked(
	ctx context.Context, id string, wait time.Duration, until gatehouse.Until, seen int,
) (*gatehouse.Action, error) {
	return use[*gatehouse.Action](ctx, f, "WaitAsked", id, id, wait, until, seen)
}

func (f *fake) Comment(ctx context.Context, id string, r gatehouse.CommentRequest) (*gatehouse.Action, error) {
	return use[*gatehouse.Action](ctx, f, "Comment", id, id, r)
}

func (f *fake) Assign(ctx context.Context, id string, r gatehouse.AssignRequest) (*gatehouse.Action, error) {
	return use[*gatehouse.Action](ctx, f, "Assign", id, id, r)
}

func (f *fake) ListActions(ctx context.Context, filter gatehouse.ActionFilter) (actionPage, error) {
	return use[actionPage](ctx, f, "ListActions", "", filter)
}

func (f *fake) Decide(ctx context.Context, id string, d gatehouse.Decision) (*gatehouse.Answer, error) {
	return use[*gatehouse.Answer](ctx, f, "Decide", id, id, d)
}

func (f *fake) Answer(ctx context.Context, id string, d gatehouse.Decision) (*gatehouse.ShortAnswer, error) {
	return use[*gatehouse.ShortAnswer](ctx, f, "Answer", id, id, d)
}

func (f *fake) BulkDecide(ctx context.Context, b gatehouse.BulkDecision) (*gatehouse.BulkAnswer, error) {
	return use[*gatehouse.BulkAnswer](ctx, f, "BulkDecide", "", b)
}

func (f *fake) Cancel(ctx context.Context, id string) (*gatehouse.CancelAnswer, error) {
	return use[*gatehouse.CancelAnswer](ctx, f, "Cancel", id, id)
}

func (f *fake) Undo(ctx context.Context, id string) (*gatehouse.UndoAnswer, error) {
	return use[*gatehouse.UndoAnswer](ctx, f, "Undo", id, id)
}

func (f *fake) Edit(ctx context.Context, id string, e gatehouse.EditRequest) (*gatehouse.Action, error) {
	return use[*gatehouse.Action](ctx, f, "Edit", id, id, e)
}

func (f *fake) Rebase(ctx context.Context, id string) (*gatehouse.Action, error) {
	return use[*gatehouse.Action](ctx, f, "Rebase", id, id)
}

func (f *fake) Revise(ctx context.Context, id string, p *gatehouse.Proposal) (*gatehouse.Action, error) {
	return use[*gatehouse.Action](ctx, f, "Revise", id, id, p)
}

func (f *fake) Reverse(ctx context.Context, id string, r gatehouse.ReverseRequest) (*gatehouse.Action, error) {
	return use[*gatehouse.Action](ctx, f, "Reverse", id, id, r)
}

func (f *fake) Evidence(ctx context.Context, id string) (*gatehouse.Evidence, error) {
	return use[*gatehouse.Evidence](ctx, f, "Evidence", id, id)
}

func (f *fake) ListMirror(ctx context.Context, cursor string, limit int) (mirrorPage, error) {
	return use[mirrorPage](ctx, f, "ListMirror", "", cursor, limit)
}

func (f *fake) ListCorpus(ctx context.Context, cursor string, limit int) (corpusPage, error) {
	return use[corpusPage](ctx, f, "ListCorpus", "", cursor, limit)
}

func (f *fake) ListBreakers(ctx context.Context) ([]gatehouse.BreakerState, error) {
	return use[[]gatehouse.BreakerState](ctx, f, "ListBreakers", "")
}

func (f *fake) DispatchHealth(ctx context.Context) (*gatehouse.DispatchHealth, error) {
	return use[*gatehouse.DispatchHealth](ctx, f, "DispatchHealth", "")
}

func (f *fake) GroupDeadLetters(
	ctx context.Context, filter gatehouse.DeadLetterFilter,
) (*gatehouse.DeadLetterGroups, error) {
	return use[*gatehouse.DeadLetterGroups](ctx, f, "GroupDeadLetters", "", filter)
}

func (f *fake) ListPushes(ctx context.Context, filter gatehouse.PushFilter) (pushPage, error) {
	return use[pushPage](ctx, f, "ListPushes", "", filter)
}

func (f *fake) Drain(ctx context.Context, r gatehouse.DrainRequest) (*gatehouse.DrainAnswer, error) {
	return use[*gatehouse.DrainAnswer](ctx, f, "Drain", "", r)
}

func (f *fake) ListDeadLetters(ctx context.Context, filter gatehouse.DeadLetterFilter) (letterPage, error) {
	return use[letterPage](ctx, f, "ListDeadLetters", "", filter)
}

func (f *fake) DiscardDeadLetters(
	ctx context.Context, r gatehouse.DiscardRequest,
) (*gatehouse.DeadLetterAnswer, error) {
	return use[*gatehouse.DeadLetterAnswer](ctx, f, "DiscardDeadLetters", "", r)
}

func (f *fake) ResolveDeadLetters(
	ctx context.Context, r gatehouse.ResolveRequest,
) (*gatehouse.DeadLetterAnswer, error) {
	return use[*gatehouse.DeadLetterAnswer](ctx, f, "ResolveDeadLetters", "", r)
}

func (f *fake) ReplayDeadLetters(ctx context.Context, r gatehouse.ReplayRequest) (*gatehouse.ReplayAnswer, error) {
	return use[*gatehouse.ReplayAnswer](ctx, f, "ReplayDeadLetters", "", r)
}

func (f *fake) ResolvePush(ctx context.Context, id string, r gatehouse.Resolution) (*gatehouse.Push, error) {
	return use[*gatehouse.Push](ctx, f, "ResolvePush", id, id, r)
}

func (f *fake) CreatePrincipal(ctx context.Context, r gatehouse.NewPrincipal) (*gatehouse.Credentials, error) {
	return use[*gatehouse.Credentials](ctx, f, "CreatePrincipal", "", r)
}

func (f *fake) FindPrincipal(ctx context.Context, id string) (*gatehouse.Principal, error) {
	return use[*gatehouse.Principal](ctx, f, "FindPrincipal", id, id)
}

func (f *fake) ListPrincipals(ctx context.Context, cursor string, limit int) (principalPage, error) {
	return use[principalPage](ctx, f, "ListPrincipals", "", cursor, limit)
}

func (f *fake) UpdatePrincipal(
	ctx context.Context, id string, r gatehouse.PrincipalChange,
) (*gatehouse.Principal, error) {
	return use[*gatehouse.Principal](ctx, f, "UpdatePrincipal", id, id, r)
}

func (f *fake) CreateKey(ctx context.Context, id string) (*gatehouse.Credentials, error) {
	return use[*gatehouse.Credentials](ctx, f, "CreateKey", id, id)
}

func (f *fake) ListKeys(ctx context.Context, id string) ([]*gatehouse.Key, error) {
	return use[[]*gatehouse.Key](ctx, f, "ListKeys", id, id)
}

func (f *fake) RevokeKey(ctx context.Context, id string) error {
	f.mu.Lock()
	f.values["RevokeKey"] = struct{}{}
	f.mu.Unlock()
	_, err := use[struct{}](ctx, f, "RevokeKey", id, id)
	return err
}

func (f *fake) RotateEditToken(ctx context.Context, id string) (*gatehouse.Credentials, error) {
	return use[*gatehouse.Credentials](ctx, f, "RotateEditToken", id, id)
}

func (f *fake) ListSessions(ctx context.Context, filter gatehouse.SessionFilter) (sessionPage, error) {
	return use[sessionPage](ctx, f, "ListSessions", "", filter)
}

func (f *fake) RevokeSession(ctx context.Context, id string) (*gatehouse.Session, error) {
	return use[*gatehouse.Session](ctx, f, "RevokeSession", id, id)
}

func (f *fake) CreateSetupLink(ctx context.Context, id string) (*gatehouse.NewSetupLink, error) {
	return use[*gatehouse.NewSetupLink](ctx, f, "CreateSetupLink", id, id)
}

func (f *fake) PutGroup(ctx context.Context, name string, m gatehouse.GroupMembers) (*gatehouse.Group, error) {
	return use[*gatehouse.Group](ctx, f, "PutGroup", "", name, m)
}

func (f *fake) ChangeGroup(ctx context.Context, name string, r gatehouse.GroupChange) (*gatehouse.Group, error) {
	return use[*gatehouse.Group](ctx, f, "ChangeGroup", name, name, r)
}

func (f *fake) DeleteGroup(ctx context.Context, name string) error {
	f.mu.Lock()
	f.values["DeleteGroup"] = struct{}{}
	f.mu.Unlock()
	_, err := use[struct{}](ctx, f, "DeleteGroup", name, name)
	return err
}

func (f *fake) FindGroup(ctx context.Context, name string) (*gatehouse.Group, error) {
	return use[*gatehouse.Group](ctx, f, "FindGroup", name, name)
}

func (f *fake) ListGroups(ctx context.Context) ([]*gatehouse.Group, error) {
	return use[[]*gatehouse.Group](ctx, f, "ListGroups", "")
}

func (f *fake) CreateTenant(ctx context.Context, id string) (*gatehouse.Tenant, error) {
	return use[*gatehouse.Tenant](ctx, f, "CreateTenant", "", id)
}

func (f *fake) ListTenants(ctx context.Context) ([]*gatehouse.Tenant, error) {
	return use[[]*gatehouse.Tenant](ctx, f, "ListTenants", "")
}

func (f *fake) WhoAmI(ctx context.Context) (*gatehouse.Principal, error) {
	return use[*gatehouse.Principal](ctx, f, "WhoAmI", "")
}

func (f *fake) ApplyPolicy(ctx context.Context, source string) (*gatehouse.PolicyVersion, error) {
	return use[*gatehouse.PolicyVersion](ctx, f, "ApplyPolicy", "", source)
}

func (f *fake) ActivePolicy(ctx context.Context) (*gatehouse.PolicyVersion, error) {
	return use[*gatehouse.PolicyVersion](ctx, f, "ActivePolicy", "")
}

func (f *fake) FindPolicy(ctx context.Context, version int) (*gatehouse.PolicyVersion, error) {
	return use[*gatehouse.PolicyVersion](ctx, f, "FindPolicy", strconv.Itoa(version), version)
}

func (f *fake) ListPolicies(ctx context.Context) ([]*gatehouse.PolicyVersion, error) {
	return use[[]*gatehouse.PolicyVersion](ctx, f, "ListPolicies", "")
}

func (f *fake) PolicyUsage(ctx context.Context) ([]*gatehouse.CeilingAccount, error) {
	return use[[]*gatehouse.CeilingAccount](ctx, f, "PolicyUsage", "")
}

func (f *fake) ActivatePolicy(ctx context.Context, version int) (*gatehouse.PolicyVersion, error) {
	return use[*gatehouse.PolicyVersion](ctx, f, "ActivatePolicy", strconv.Itoa(version), version)
}

func (f *fake) ProposePolicy(ctx context.Context, r gatehouse.PolicyProposal) (*gatehouse.Action, error) {
	return use[*gatehouse.Action](ctx, f, "ProposePolicy", "", r)
}

func (f *fake) ExplainPolicy(ctx context.Context, p *gatehouse.Proposal) (*gatehouse.Explanation, error) {
	return use[*gatehouse.Explanation](ctx, f, "ExplainPolicy", "", p)
}

func (f *fake) ListEntries(ctx context.Context, from int64, limit int) ([]*gatehouse.Entry, error) {
	return use[[]*gatehouse.Entry](ctx, f, "ListEntries", "", from, limit)
}

func (f *fake) Head(ctx context.Context) (*gatehouse.LogHead, error) {
	return use[*gatehouse.LogHead](ctx, f, "Head", "")
}
