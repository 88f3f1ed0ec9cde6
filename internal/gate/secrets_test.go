package gate_test

import (
	"context"
	"encoding/json"
	"log/slog"
	"strings"
	"testing"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/gate"
	"github.com/gatehouse-dev/gatehouse/internal/ring"
	"github.com/gatehouse-dev/gatehouse/internal/wake"
)

func newMaster(t *testing.T, text string) *ring.Master {
	t.Helper()
	m, err := ring.Parse(text)
	must(t, err)
	return m
}

// under replaces the gate by one on the same store with other master keys.
func (w *world) under(master *ring.Master) {
	w.gate = gate.New(w.store, w.targets, &wake.Hub{}, gate.Config{
		Master: master,
		SecretUses: func(tenant string) map[string][]string {
			if tenant != gatehouse.DefaultTenant {
				return map[string][]string{}
			}
			return map[string][]string{"shop-token": {"shop"}, "crm-token": {"crm"}}
		},
	}, slog.New(slog.DiscardHandler))
}

// values opens the secrets of a tenant: "!" marks one that cannot be opened.
func (w *world) values(tenant string) map[string]string {
	w.t.Helper()
	opened, err := w.gate.OpenSecrets(w.t.Context(), tenant)
	must(w.t, err)
	out := map[string]string{}
	for _, o := range opened {
		if out[o.Name] = o.Value; o.Err != nil {
			out[o.Name] = "!" + o.Value
		}
	}
	return out
}

func (w *world) wantValue(what, want string) {
	w.t.Helper()
	if got := w.values(gatehouse.DefaultTenant)["shop-token"]; got != want {
		w.t.Errorf("%s: %q, want %q", what, got, want)
	}
}

func (w *world) secretStates() map[string]gatehouse.SecretState {
	w.t.Helper()
	list, err := w.gate.ListSecrets(w.admin)
	must(w.t, err)
	out := map[string]gatehouse.SecretState{}
	for _, s := range list {
		out[s.Name] = s.State
	}
	return out
}

func set(ctx context.Context, g *gate.Gate, value string) (*gatehouse.Secret, error) {
	return g.SetSecret(ctx, gatehouse.NewSecret{Name: "shop-token", Value: value})
}

// TestSecrets sets, rotates, revokes and sets again.
func TestSecrets(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "")
	_, err := set(w.admin, w.gate, "first-value")
	wantCode(t, err, gatehouse.CodeUnsupported) // no master key
	w.under(newMaster(t, ring.NewMasterKey()))
	ana := w.person("ana")
	_, err = set(ana, w.gate, "first-value")
	wantCode(t, err, gatehouse.CodeRoleRequired)
	_, err = w.gate.ListSecrets(ana)
	wantCode(t, err, gatehouse.CodeRoleRequired)
	_, err = set(w.admin, w.gate, "abc")
	wantCode(t, err, gatehouse.CodeInvalid)
	rotate := func(value string) (*gatehouse.Secret, error) {
		return w.gate.RotateSecret(w.admin, gatehouse.NewSecret{Name: "shop-token", Value: value})
	}
	_, err = rotate("first-value")
	wantCode(t, err, gatehouse.CodeNotFound)
	if got := w.secretStates()["shop-token"]; got != gatehouse.SecretMissing {
		t.Errorf("before it is set: %q", got)
	}

	s, err := set(w.admin, w.gate, "first-value")
	if err != nil || s.Version != 1 || s.SetByName != "admin" || len(s.UsedBy) != 1 {
		t.Fatalf("%+v, %v", s, err)
	}
	w.wantValue("set", "first-value")
	_, err = set(w.admin, w.gate, "other-value")
	wantCode(t, err, gatehouse.CodeAlreadyExists)
	if s, err = rotate("second-value"); err != nil || s.Version != 2 {
		t.Fatalf("%+v, %v", s, err)
	}
	w.wantValue("rotated", "second-value")
	for range 2 {
		if s, err = w.gate.RevokeSecret(w.admin, "shop-token"); err != nil || s.State != gatehouse.SecretRevoked {
			t.Fatalf("%+v, %v", s, err)
		}
	}
	w.wantValue("revoked", "!")
	_, err = rotate("third-value")
	wantCode(t, err, gatehouse.CodeNotFound)
	if s, err = set(w.admin, w.gate, "third-value"); err != nil || s.Version != 3 {
		t.Fatalf("%+v, %v", s, err)
	}
	w.wantValue("set again", "third-value")
	w.wantTold()
}

// wantTold checks that the log and the notices have the changes of TestSecrets, and that no value
// is in them.
func (w *world) wantTold() {
	w.t.Helper()
	logged, told := map[string]int{}, map[string]int{}
	for _, l := range w.entries() {
		if l.Subject == "shop-token" {
			logged[l.Type]++
		}
	}
	notices := w.notices(w.admin, gatehouse.NoticeFilter{})
	for _, n := range notices {
		if n.Subject == "shop-token" {
			told[n.Kind]++
		}
	}
	for kind, n := range map[string]int{"secret.set": 2, "secret.rotated": 1, "secret.revoked": 1} {
		if logged[kind] != n || told[kind] != n {
			w.t.Errorf("%s: %d entries and %d notices, want %d", kind, logged[kind], told[kind], n)
		}
	}
	list, err := w.gate.ListSecrets(w.admin)
	must(w.t, err)
	b, err := json.Marshal([]any{list, notices, w.entries()})
	if err != nil || strings.Contains(string(b), "-value") {
		w.t.Errorf("a value is disclosed: %s, %v", b, err)
	}
}

// acme creates another tenant, and returns its administrator.
func (w *world) acme() context.Context {
	w.t.Helper()
	if _, err := w.gate.CreateTenant(w.admin, "acme"); err != nil {
		w.t.Fatal(err)
	}
	creds, err := w.gate.CreatePrincipal(w.admin, gatehouse.NewPrincipal{
		Name: "root", Kind: gatehouse.KindPerson, Roles: []gatehouse.Role{gatehouse.RoleAdmin}, Tenant: "acme",
	})
	must(w.t, err)
	return w.as(creds)
}

// TestSecretsBelongToOneTenant: a tenant's connectors find its own secrets only.
func TestSecretsBelongToOneTenant(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "")
	w.under(newMaster(t, ring.NewMasterKey()))
	if _, err := set(w.acme(), w.gate, "of acme"); err != nil {
		t.Fatal(err)
	}
	if got := w.values("acme"); len(got) != 1 || got["shop-token"] != "of acme" {
		t.Errorf("acme has %v", got)
	}
	if got := w.values(gatehouse.DefaultTenant); len(got) != 0 {
		t.Errorf("default has %v", got)
	}
	if got := w.secretStates(); got["shop-token"] != gatehouse.SecretMissing {
		t.Errorf("default sees %v", got)
	}
}

// TestSecretsOpenInTheirPlace copies a sealed value to another name, where it does not open.
func TestSecretsOpenInTheirPlace(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "")
	w.under(newMaster(t, ring.NewMasterKey()))
	if _, err := set(w.admin, w.gate, "shop-value"); err != nil {
		t.Fatal(err)
	}
	err := w.store.Update(t.Context(), gatehouse.DefaultTenant, func(tx gatehouse.Tx) error {
		s, err := tx.FindSecret("shop-token")
		if err != nil {
			return err
		}
		s.Name = "crm-token"
		return tx.PutSecret(s)
	})
	must(t, err)
	if got := w.values(gatehouse.DefaultTenant); got["shop-token"] != "shop-value" || got["crm-token"] != "!" {
		t.Errorf("%v", got)
	}
	if got := w.secretStates()["crm-token"]; got != gatehouse.SecretUnreadable {
		t.Errorf("it is %s", got)
	}
}

// TestMasterKeyOfSecrets replaces the master key: the keys of secrets are sealed again, and the old
// master key can be removed.
func TestMasterKeyOfSecrets(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "")
	first, second := ring.NewMasterKey(), ring.NewMasterKey()
	w.under(newMaster(t, first))
	if _, err := set(w.admin, w.gate, "the-value"); err != nil {
		t.Fatal(err)
	}
	w.under(newMaster(t, second))
	w.wantValue("under another master key", "!")
	if got := w.secretStates()["shop-token"]; got != gatehouse.SecretUnreadable {
		t.Errorf("it is %s", got)
	}
	if n, err := w.gate.ResealKeys(t.Context()); n != 0 || err != nil {
		t.Errorf("%d resealed without the old master key, %v", n, err)
	}
	w.under(newMaster(t, second+"\n"+first))
	w.wantValue("under both", "the-value")
	if n, err := w.gate.ResealKeys(t.Context()); n != 1 || err != nil {
		t.Errorf("%d resealed, %v", n, err)
	}
	if n, err := w.gate.ResealKeys(t.Context()); n != 0 || err != nil {
		t.Errorf("%d resealed again, %v", n, err)
	}
	w.under(newMaster(t, second))
	w.wantValue("under the new one alone", "the-value")

	// With the master key lost, a new value is sealed under a new key.
	w.under(newMaster(t, ring.NewMasterKey()))
	w.wantValue("with the master key lost", "!")
	if _, err := w.gate.RotateSecret(w.admin, gatehouse.NewSecret{Name: "shop-token", Value: "new-value"}); err != nil {
		t.Fatal(err)
	}
	w.wantValue("rotated after that", "new-value")
}

// TestResealRetiredKey: a key that was replaced while its master key was missing still seals other
// secrets, so it is sealed again as well.
func TestResealRetiredKey(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "")
	first, second := ring.NewMasterKey(), ring.NewMasterKey()
	w.under(newMaster(t, first))
	if _, err := set(w.admin, w.gate, "the-value"); err != nil {
		t.Fatal(err)
	}
	w.under(newMaster(t, second))
	if _, err := w.gate.SetSecret(w.admin, gatehouse.NewSecret{Name: "crm-token", Value: "other"}); err != nil {
		t.Fatal(err)
	}
	w.under(newMaster(t, second+"\n"+first))
	if n, err := w.gate.ResealKeys(t.Context()); n != 1 || err != nil {
		t.Errorf("%d resealed, %v", n, err)
	}
	w.under(newMaster(t, second))
	w.wantValue("under the new one alone", "the-value")
}

// TestResealPastADamagedKey: a key that cannot be opened is named, and does not prevent the others
// from being sealed again.
func TestResealPastADamagedKey(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "")
	first, second := ring.NewMasterKey(), ring.NewMasterKey()
	w.under(newMaster(t, first))
	var damaged string
	err := w.store.Update(t.Context(), gatehouse.DefaultTenant, func(tx gatehouse.Tx) error {
		damaged = gate.NewID("rgk")
		return tx.InsertRingKey(&gatehouse.RingKey{
			ID: damaged, Number: 1, Tenant: gatehouse.DefaultTenant, Purpose: gatehouse.RingSecrets,
			Sealed: make([]byte, 80), Master: newMaster(t, first).ID(), CreatedAt: tx.Now(), CreatedBy: "prn_1",
			State: gatehouse.RingKeyActive,
		})
	})
	must(t, err)
	if _, err := set(w.acme(), w.gate, "the-value"); err != nil {
		t.Fatal(err)
	}
	w.under(newMaster(t, second+"\n"+first))
	for i, want := range []int{1, 0} {
		n, err := w.gate.ResealKeys(t.Context())
		if n != want || err == nil || !strings.Contains(err.Error(), damaged) {
			t.Errorf("round %d: %d resealed, %v", i, n, err)
		}
	}
	w.under(newMaster(t, second))
	if got := w.values("acme")["shop-token"]; got != "the-value" {
		t.Errorf("acme has %q", got)
	}
}

// TestOpenPastADamagedKey: a ring key of the wrong length does not prevent the other secrets from being opened, nor
// a secret from being set: a new key replaces the damaged one.
func TestOpenPastADamagedKey(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "")
	master := newMaster(t, ring.NewMasterKey())
	w.under(master)
	_, err := set(w.admin, w.gate, "the-value")
	must(t, err)
	must(t, w.store.Update(t.Context(), gatehouse.DefaultTenant, func(tx gatehouse.Tx) error {
		keys, err := tx.ListRingKeys(gatehouse.RingSecrets)
		must(t, err)
		must(t, tx.RetireRingKey(keys[0].ID, tx.Now()))
		sealed, err := master.Seal([]byte("short"), gatehouse.DefaultTenant, string(gatehouse.RingSecrets), "2")
		must(t, err)
		return tx.InsertRingKey(&gatehouse.RingKey{
			ID: gate.NewID("rgk"), Number: 2, Tenant: gatehouse.DefaultTenant, Purpose: gatehouse.RingSecrets,
			Sealed: sealed, Master: master.ID(), CreatedAt: tx.Now(), CreatedBy: "prn_1", State: gatehouse.RingKeyActive,
		})
	}))
	w.wantValue("after the damage", "the-value")
	if got := w.secretStates()["shop-token"]; got != gatehouse.SecretSet {
		t.Errorf("the state is %s", got)
	}
	_, err = w.gate.RotateSecret(w.admin, gatehouse.NewSecret{Name: "shop-token", Value: "the-next-value"})
	must(t, err)
	w.wantValue("set after the damage", "the-next-value")
}
