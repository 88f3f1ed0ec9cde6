package invariants

import (
	"context"
	"database/sql"
	"errors"
	"testing"
	"time"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/gatetest"
	"github.com/gatehouse-dev/gatehouse/internal/store/sqlite/sqlitetest/migratedfile"
)

// TestDelegationEnds: a delegation has ended exactly if the log says so.
func TestDelegationEnds(t *testing.T) {
	t.Parallel()
	path := migratedfile.New(t)
	clock := gatetest.NewClock()
	s := migratedfile.Open(t, path, clock.Now)
	w := gatetest.New(t, s, clock)
	w.Fill()
	p, err := w.Gate.Authenticate(t.Context(), w.Key)
	must(t, err)
	admin := gatehouse.NewContext(t.Context(), &gatehouse.Caller{Principal: p, Via: gatehouse.ViaAPI, StepUp: true})
	for _, name := range []string{"dan", "eve"} {
		_, err := w.Gate.CreatePrincipal(admin, gatehouse.NewPrincipal{Name: name, Kind: gatehouse.KindPerson,
			Roles: []gatehouse.Role{gatehouse.RoleApprover}})
		must(t, err)
	}
	var d *gatehouse.Delegation
	for range 2 {
		d, err = w.Gate.CreateDelegation(admin,
			gatehouse.NewDelegation{From: "dan", To: "eve", Ends: clock.Now().Add(time.Hour)})
		must(t, err)
	}
	open := func() (*Target, error) { return OpenFile(context.Background(), path, quiet()) }
	sound := func(what string, want bool) {
		t.Helper()
		if r := check(t, open, Options{}); r.OK != want {
			t.Errorf("%s: sound is %v: %v", what, r.OK, r.Violated())
		}
	}
	sound("in force", true)
	_, err = w.Gate.EndDelegation(admin, d.ID)
	must(t, err)
	sound("ended", true)
	db, err := sql.Open("sqlite", "file:"+path)
	must(t, err)
	_, err = db.Exec(`UPDATE delegation SET ended_at = 1, ended_by = 'dan' WHERE ended_at IS NULL`)
	must(t, errors.Join(err, db.Close()))
	sound("ended in the table alone", false)
}
