package postgres

import (
	"context"
	"log/slog"
	"sync"
	"testing"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/app"
	"github.com/gatehouse-dev/gatehouse/internal/policy"
	"github.com/gatehouse-dev/gatehouse/internal/wake"
)

// meeting lets two transactions come to the change of a principal at the same
// time: each has read by then what it will write.
type meeting struct {
	*Store
	once    [2]sync.Once
	arrived sync.WaitGroup
}

func (m *meeting) Update(ctx context.Context, fn func(gatehouse.Tx) error) error {
	side, meets := ctx.Value(m).(int)
	return m.Store.Update(ctx, func(tx gatehouse.Tx) error {
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

// TestChangesOfOnePrincipal lets administrators change principals at the same
// time: what the one has done is not undone by the other, who had read the
// principal before, and of two who disable each other one remains.
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
			gate := app.New(m, nil, &wake.Hub{}, app.Config{PolicySource: policy.DefaultSource()}, slog.New(slog.DiscardHandler))
			boot, err := gate.Bootstrap(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			as := func(ctx context.Context, key string) context.Context {
				p, err := gate.Authenticate(ctx, key)
				if err != nil {
					t.Fatal(err)
				}
				return gatehouse.NewContext(ctx, &gatehouse.Caller{Principal: p, StepUp: true, Via: gatehouse.ViaAPI})
			}
			root := as(t.Context(), boot.Key)
			admins := make(map[string]context.Context)
			for i, name := range []string{"ana", "bo", "cy"} {
				made, err := gate.CreatePrincipal(root, gatehouse.NewPrincipal{Name: name, Kind: gatehouse.KindPerson, Roles: []gatehouse.Role{gatehouse.RoleAdmin}})
				if err != nil {
					t.Fatal(err)
				}
				admins[name] = as(context.WithValue(t.Context(), m, i), made.Key)
			}
			done := make(chan error, 2)
			for i, admin := range []string{"ana", "bo"} {
				go func() {
					_, err := gate.UpdatePrincipal(admins[admin], c.targets[i], c.changes[i])
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
			cy, err := gate.FindPrincipal(root, "cy")
			if err != nil {
				t.Fatal(err)
			}
			if name == "two changes" && (!cy.Disabled || !cy.Has(gatehouse.RoleAuditor)) {
				t.Errorf("disabled: %v, roles %v: a change that was answered is lost", cy.Disabled, cy.Roles)
			}
		})
	}
}
