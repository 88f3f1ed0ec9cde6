package api

import (
	"context"
	"net/http"
	"strconv"

	"github.com/gatehouse-dev/gatehouse"
)

func (f *fake) Propose(ctx context.Context, p *gatehouse.Proposal) (*gatehouse.Action, bool, error) {
	a, err := use[*gatehouse.Action](ctx, &f.services, "Propose", p)
	return a, p.IdempotencyKey == "known", err
}

func (f *fake) ApplyWorkflow(ctx context.Context, name, source string) (*gatehouse.Workflow, bool, error) {
	w, err := use[*gatehouse.Workflow](ctx, &f.services, "ApplyWorkflow", name, source)
	return w, name != "unchanged", err
}

func (f *fake) StartRun(ctx context.Context, workflow string, r gatehouse.NewRun) (*gatehouse.Run, bool, error) {
	run, err := use[*gatehouse.Run](ctx, &f.services, "StartRun", workflow, r)
	return run, r.TriggerRef == "known", err
}

// Receive stands in for the check of signatures: the header X-Signature must be
// the length of the body.
func (f *fake) Receive(
	ctx context.Context, tenant, workflow string, h http.Header, body []byte,
) (*gatehouse.Run, bool, error) {
	f.mu.Lock()
	f.calls = append(f.calls, fakeCall{"Receive", nil, []any{tenant, workflow, string(body)}})
	failure := f.err
	f.mu.Unlock()
	if _, err := gatehouse.CallerFrom(ctx); err == nil {
		panic("a webhook has no caller")
	}
	switch {
	case failure != nil:
		return nil, false, failure
	case tenant != gatehouse.DefaultTenant || workflow != "triage":
		return nil, false,
			gatehouse.E(gatehouse.CodeNotFound, "no workflow %s in tenant %s", workflow, tenant).With("workflow", workflow)
	case h.Get("X-Signature") != strconv.Itoa(len(body)):
		return nil, false, gatehouse.E(gatehouse.CodeBadSignature, "the signature does not match the body")
	}
	return testRun(), h.Get("X-Event") == "again", nil
}

// ReportTarget stands in for the check of signatures, as Receive does.
func (f *fake) ReportTarget(
	ctx context.Context, source string, h http.Header, body []byte,
) (*gatehouse.TargetChanges, bool, error) {
	_, replayed, err := f.Receive(ctx, gatehouse.DefaultTenant, source, h, body)
	if err != nil {
		return nil, false, err
	}
	return &gatehouse.TargetChanges{Marked: 3, ActionIDs: []string{"act_1"}}, replayed, nil
}

// The tests of review links are in internal/console, with a real gate.
func (*fake) OpenReview(context.Context, string, string, string) (*gatehouse.OpenReview, error) {
	return nil, gatehouse.E(gatehouse.CodeBadToken, "the fake has no reviews")
}

func (*fake) ReviewOpened(context.Context, string, string, string) error {
	return gatehouse.E(gatehouse.CodeBadToken, "the fake has no reviews")
}

func (*fake) DecideReview(
	context.Context, string, string, gatehouse.ReviewDecision,
) (*gatehouse.Answer, error) {
	return nil, gatehouse.E(gatehouse.CodeBadToken, "the fake has no reviews")
}

func (*fake) ReviewNonce(context.Context, string, string, string) (string, error) { return "", nil }

func (*fake) TakeReviewNonce(context.Context, string, string, string, string) error { return nil }

func (*fake) DeviceToken(context.Context, *gatehouse.Session) (string, error) { return "", nil }
