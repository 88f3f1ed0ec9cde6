package postgres

import (
	"context"
	"strings"
	"testing"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/connector"
	"github.com/gatehouse-dev/gatehouse/internal/dispatch"
)

// held is a target whose call ends when released.
type held struct{ called, release chan struct{} }

func (h *held) Fingerprint() string { return strings.Repeat("0a", 32) }

func (h *held) Operation(name string) (connector.Operation, bool) {
	return connector.Operation{Name: name, Class: connector.ClassA}, true
}

func (h *held) Execute(context.Context, connector.Call) (connector.Result, error) {
	close(h.called)
	<-h.release
	return connector.Result{RequestMetadata: "{}", ResponseMetadata: "{}"}, nil
}

// TestSuccessLocksInOrder records a success while another transaction holds the action, which
// policy allowed: it waits for the action first, without having locked the push, which the
// other transaction may want next.
func TestSuccessLocksInOrder(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	s := openTest(t, Config{})
	approved(t, s, "acme", 1)
	target := &held{called: make(chan struct{}), release: make(chan struct{})}
	registry, err := dispatch.NewRegistry(dispatch.Target{Name: "shop", Connector: target, Tenants: []string{"acme"}})
	if err != nil {
		t.Fatal(err)
	}
	d, err := dispatch.New(dispatch.Dependencies{Store: s, Targets: registry, Authority: allowing{}, Owner: "w"},
		dispatch.DefaultConfig())
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() {
		_, err := d.Drain(ctx, "acme", 1)
		done <- err
	}()
	<-target.called
	runs := 0
	beside := openTest(t, Config{URL: s.config.URL}) // within one process, the worker would wait in the lock queue
	err = beside.Update(ctx, "acme", func(x gatehouse.Tx) error {
		runs++
		if _, err := x.LockAction("act_acme-00000"); err != nil {
			return err
		}
		if runs == 1 {
			close(target.release)
			waitForLock(t, s)
		}
		tx := x.(*tx)
		return tx.lockAndRead(
			[]query{ask(`SELECT 1 FROM push WHERE tenant = $1 FOR NO KEY UPDATE NOWAIT`, nil, "acme")},
		)
	})
	if err != nil || runs != 1 {
		t.Errorf("the push was locked before its action: %d runs, %v", runs, err)
	}
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	err = s.View(ctx, "acme", func(tx gatehouse.ReadTx) error {
		a, err := tx.FindAction("act_acme-00000")
		if err == nil && (a.Status != gatehouse.StatusApplied || a.Push.Status != gatehouse.PushApplied) {
			t.Errorf("action %s, push %s", a.Status, a.Push.Status)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}
