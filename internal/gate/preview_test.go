package gate_test

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/gate"
	"github.com/gatehouse-dev/gatehouse/internal/wake"
)

// previewing is the targets of a gate with previews.
type previewing struct {
	*targets
	asked     atomic.Int64
	onPreview func(context.Context, *gatehouse.Action) (gatehouse.Preview, error)
}

func (*previewing) Previews(a *gatehouse.Action) bool { return a.Operation == "update" }

func (p *previewing) Preview(ctx context.Context, a *gatehouse.Action) (gatehouse.Preview, error) {
	p.asked.Add(1)
	return p.onPreview(ctx, a)
}

func newPreviewingWorld(t *testing.T) (*world, *previewing) {
	t.Helper()
	w := newWorld(t, "")
	p := &previewing{targets: w.targets, onPreview: func(context.Context, *gatehouse.Action) (gatehouse.Preview,
		error) {
		return gatehouse.Preview{Rows: 1}, nil
	}}
	w.previewing(p, time.Minute)
	return w, p
}

func (w *world) previewing(p *previewing, timeout time.Duration) {
	hold := time.Duration(0)
	w.gate = gate.New(w.store, p, &wake.Hub{}, gate.Config{Hold: &hold, CheckTimeout: timeout},
		slog.New(slog.DiscardHandler))
}

// TestPreviewRights: people who decide, operate, administer or audit see previews; programs and
// proposers do not, since a preview shows the content of the target.
func TestPreviewRights(t *testing.T) {
	t.Parallel()
	w, targets := newPreviewingWorld(t)
	bot := w.agent()
	a := w.propose(bot, nil)
	if !w.find(a.ID).CanPreview {
		t.Error("can_preview is false")
	}
	role := func(name string, kind gatehouse.Kind, roles ...gatehouse.Role) context.Context {
		return w.principal(name, kind, roles...)
	}
	for name, test := range map[string]struct {
		who  context.Context
		code gatehouse.Code
	}{
		"approver":      {role("p1", gatehouse.KindPerson, gatehouse.RoleApprover), ""},
		"operator":      {role("p2", gatehouse.KindPerson, gatehouse.RoleOperator), ""},
		"admin":         {role("p3", gatehouse.KindPerson, gatehouse.RoleAdmin), ""},
		"auditor":       {role("p4", gatehouse.KindPerson, gatehouse.RoleAuditor), ""},
		"proposer":      {role("p5", gatehouse.KindPerson, gatehouse.RoleProposer), gatehouse.CodeRoleRequired},
		"its own agent": {bot, gatehouse.CodeRoleRequired},
		"a service that operates": {role("s1", gatehouse.KindService, gatehouse.RoleOperator),
			gatehouse.CodeRoleRequired},
	} {
		targets.asked.Store(0)
		p, err := w.gate.Preview(test.who, a.ID)
		if gatehouse.CodeOf(err) != test.code || err == nil && (p.Rows != 1 || p.AskedAt.IsZero()) {
			t.Errorf("%s: %+v, %v", name, p, err)
		}
		if err != nil && targets.asked.Load() != 0 {
			t.Errorf("%s: the target was asked", name)
		}
	}
}

// TestPreviewOfPendingActionsOnly: only pending actions of the caller's tenant have previews.
func TestPreviewOfPendingActionsOnly(t *testing.T) {
	t.Parallel()
	w, targets := newPreviewingWorld(t)
	bot, ana := w.agent(), w.person("ana")
	a := w.propose(bot, nil)
	if _, err := w.gate.CreateTenant(w.admin, "acme"); err != nil {
		t.Fatal(err)
	}
	boss, err := w.gate.CreatePrincipal(w.admin, gatehouse.NewPrincipal{
		Tenant: "acme", Name: "boss", Kind: gatehouse.KindPerson, Roles: []gatehouse.Role{gatehouse.RoleAdmin},
	})
	must(t, err)
	if _, err := w.gate.Preview(w.as(boss), a.ID); gatehouse.CodeOf(err) != gatehouse.CodeNotFound {
		t.Errorf("another tenant: %v", err)
	}
	if _, err := w.gate.Preview(context.Background(), a.ID); err == nil {
		t.Error("a preview without a caller is accepted")
	}
	if n := targets.asked.Load(); n != 0 {
		t.Errorf("asked %d times", n)
	}
	if _, err := w.gate.Cancel(bot, a.ID); err != nil {
		t.Fatal(err)
	}
	p, err := w.gate.Preview(ana, a.ID)
	if err != nil || p.None == "" || targets.asked.Load() != 0 {
		t.Errorf("a canceled action: %+v, %v", p, err)
	}
}

// TestPreviewBounds: pages share one answer; a target that hangs delays nobody for long, is asked
// at most twice at a time, and blocks no decision.
func TestPreviewBounds(t *testing.T) {
	t.Parallel()
	w, targets := newPreviewingWorld(t)
	bot, ana := w.agent(), w.person("ana")
	a := w.propose(bot, nil)
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() {
			if _, err := w.gate.Preview(ana, a.ID); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if n := targets.asked.Load(); n != 1 {
		t.Errorf("20 pages asked %d times", n)
	}

	w.previewing(targets, 500*time.Millisecond)
	targets.asked.Store(0)
	over := make(chan struct{})
	defer close(over)
	targets.onPreview = func(context.Context, *gatehouse.Action) (gatehouse.Preview, error) {
		<-over // with an expired context
		return gatehouse.Preview{}, errors.New("over")
	}
	var hanging []*gatehouse.Action
	for range 5 {
		hanging = append(hanging, w.propose(bot, nil))
	}
	begun := time.Now()
	for _, a := range hanging {
		all.Go(func() {
			if _, err := w.gate.Preview(ana, a.ID); gatehouse.CodeOf(err) != gatehouse.CodeBusy {
				t.Errorf("a target that hangs: %v", err)
			}
		})
	}
	all.Wait()
	if d := time.Since(begun); d > 5*time.Second {
		t.Errorf("waited %s", d)
	}
	if n := targets.asked.Load(); n != 2 {
		t.Errorf("asked %d at a time", n)
	}
	if _, err := w.gate.Decide(ana, hanging[0].ID, approve(hanging[0])); err != nil {
		t.Errorf("approving beside a preview that hangs: %v", err)
	}
}
