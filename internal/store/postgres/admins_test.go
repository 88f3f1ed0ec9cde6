package postgres

import (
	"context"
	"log/slog"
	"sync"
	"testing"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/gate"
	"github.com/gatehouse-dev/gatehouse/internal/policy"
	"github.com/gatehouse-dev/gatehouse/internal/wake"
)

// meeting lets two transactions reach the change of a principal at the same time: each has
// already read the principal that it will write.
type meeting struct {
	*Store
	once    [2]sync.Once
	arrived sync.WaitGroup
}

func (m *meeting) Update(ctx context.Context, tenant string, fn func(gatehouse.Tx) error) error {
	side, meets := ctx.Value(m).(int)
	return m.Store.Update(ctx, tenant, func(tx gatehouse.Tx) error {
		if !meets {
			return fn(tx)
		}
		return fn(meetingTx{tx, func() {
			m.once[side].Do(func() {
				m.arrived.Done()
				m.arrived.Wait()
			})
		}})
	})
}

type meetingTx struct {
	gatehouse.Tx
	meet func()
}

func (t meetingTx) UpdatePrincipal(p *gatehouse.Principal) error {
	t.meet()
	return t.Tx.UpdatePrincipal(p)
}

// TestChangesOfOnePrincipal lets administrators change principals at the same time. One change
// does not undo another that was made after its read, and of two people who disable each other
// one remains.
func TestChangesOfOnePrincipal(t *testing.T) {
	t.Parallel()
	yes, roles := true, []gatehouse.Role{gatehouse.RoleApprover, gatehouse.RoleAuditor}
	for name, c := range map[string]struct {
		targets [2]string
		changes [2]gatehouse.PrincipalChange
		fail    int
	}{
		"two changes":    {[2]string{"cy", "cy"}, [2]gatehouse.PrincipalChange{{Disabled: &yes}, {Roles: &roles}}, 0},
		"of one another": {[2]string{"bo", "ana"}, [2]gatehouse.PrincipalChange{{Disabled: &yes}, {Disabled: &yes}}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := &meeting{Store: openTest(t, Config{})}
			m.arrived.Add(2)
			g := gate.New(m, nil, &wake.Hub{}, gate.Config{PolicySource: policy.DefaultSource()},
				slog.New(slog.DiscardHandler))
			boot, err := g.Bootstrap(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			as := func(ctx context.Context, key string) context.Context {
				p, err := g.Authenticate(ctx, key)
				if err != nil {
					t.Fatal(err)
				}
				return gatehouse.NewContext(ctx, &gatehouse.Caller{Principal: p, StepUp: true, Via: gatehouse.ViaAPI})
			}
			root := as(t.Context(), boot.Key)
			admins := make(map[string]context.Context)
			for i, name := range []string{"ana", "bo", "cy"} {
				made, err := g.CreatePrincipal(root, gatehouse.NewPrincipal{Name: name, Kind: gatehouse.KindPerson,
					Roles: []gatehouse.Role{gatehouse.RoleAdmin}})
				if err != nil {
					t.Fatal(err)
				}
				admins[name] = as(context.WithValue(t.Context(), m, i), made.Key)
			}
			done := make(chan error, 2)
			for i, admin := range []string{"ana", "bo"} {
				go func() {
					_, err := g.UpdatePrincipal(admins[admin], c.targets[i], c.changes[i])
					done <- err
				}()
			}
			failed := 0
			for range 2 {
				if err := <-done; err != nil {
					failed++
					if gatehouse.CodeOf(err) != gatehouse.CodeUnauthenticated {
						t.Error(err)
					}
				}
			}
			if failed != c.fail {
				t.Errorf("%d of two changes failed, want %d", failed, c.fail)
			}
			cy, err := g.FindPrincipal(root, "cy")
			if err != nil {
				t.Fatal(err)
			}
			if name == "two changes" && (!cy.Disabled || !cy.Has(gatehouse.RoleAuditor)) {
				t.Errorf("disabled: %v, roles %v: a change that was answered is lost", cy.Disabled, cy.Roles)
			}
		})
	}
}

// beginning is a store that calls before when a session is about to be inserted.
type beginning struct {
	*Store
	before func()
}

func (b *beginning) UpdateQueues(ctx context.Context, fn func(gatehouse.Queues) error) error {
	return b.Store.UpdateQueues(ctx, func(q gatehouse.Queues) error { return fn(beginningQueues{q, b.before}) })
}

type beginningQueues struct {
	gatehouse.Queues
	before func()
}

func (q beginningQueues) In(tenant string) gatehouse.Tx {
	return beginningTx{q.Queues.In(tenant), q.before}
}

type beginningTx struct {
	gatehouse.Tx
	before func()
}

func (t beginningTx) InsertSession(s *gatehouse.Session, hash [32]byte) error {
	t.before()
	return t.Tx.InsertSession(s, hash)
}

// TestSignInWhileDisabled disables a person in the middle of their sign-in: the resulting
// session is ended, and stays so.
func TestSignInWhileDisabled(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	b := &beginning{Store: openTest(t, Config{})}
	g := gate.New(b, nil, &wake.Hub{}, gate.Config{PolicySource: policy.DefaultSource()}, slog.New(slog.DiscardHandler))
	boot, err := g.Bootstrap(ctx)
	if err != nil {
		t.Fatal(err)
	}
	root, err := g.Authenticate(ctx, boot.Key)
	if err != nil {
		t.Fatal(err)
	}
	admin := gatehouse.NewContext(ctx, &gatehouse.Caller{Principal: root, StepUp: true, Via: gatehouse.ViaAPI})
	_, err = g.CreatePrincipal(admin, gatehouse.NewPrincipal{Name: "ana", Kind: gatehouse.KindPerson,
		Roles: []gatehouse.Role{gatehouse.RoleApprover}})
	if err != nil {
		t.Fatal(err)
	}
	link, err := g.CreateSetupLink(admin, "ana")
	if err != nil {
		t.Fatal(err)
	}
	disable := func(yes bool) error {
		_, err := g.UpdatePrincipal(admin, "ana", gatehouse.PrincipalChange{Disabled: &yes})
		return err
	}
	done := make(chan error, 1)
	b.before = func() {
		go func() { done <- disable(true) }()
		for { // until it waits for the sign-in, or has ended
			var waits int
			err := b.pool.QueryRow(ctx,
				`SELECT count(*) FROM pg_locks WHERE NOT granted AND pid IN (SELECT pid FROM pg_stat_activity
					WHERE datname = current_database())`).Scan(&waits)
			if err != nil {
				t.Error(err)
				return
			}
			if waits > 0 || len(done) > 0 {
				return
			}
		}
	}
	in, err := g.RedeemSetupLink(ctx, link.Token, gatehouse.Browser{})
	if err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if err := disable(false); err != nil {
		t.Fatal(err)
	}
	if c, err := g.FindSession(ctx, in.Token); err == nil {
		t.Errorf("the session of %s, who was disabled meanwhile, is alive", c.Principal.Name)
	}
}
