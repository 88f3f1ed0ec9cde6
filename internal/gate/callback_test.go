package gate_test

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/gate"
	"github.com/gatehouse-dev/gatehouse/internal/gatetest"
	"github.com/gatehouse-dev/gatehouse/internal/ring"
	"github.com/gatehouse-dev/gatehouse/internal/store/sqlite/sqlitetest/migratedfile"
)

const taskToken = "AQCEAAAAKgAAAAMAAAAAAAAAAbearer+right/of=="

// callbackWorld is a world whose store is a migrated file.
func callbackWorld(t *testing.T, file string, options ...func(*gate.Config)) *gatetest.World {
	t.Helper()
	clock := gatetest.NewClock()
	store := migratedfile.Open(t, file, clock.Now)
	w := gatetest.New(t, store, clock, options...)
	creds, err := w.Gate.Bootstrap(t.Context())
	must(t, err)
	w.SignIn(creds.Key)
	for name, role := range map[string]gatehouse.Role{"bot": gatehouse.RoleProposer, "ana": gatehouse.RoleApprover} {
		if _, err := w.Gate.CreatePrincipal(w.Admin(), gatehouse.NewPrincipal{
			Name: name, Kind: gatehouse.KindPerson, Roles: []gatehouse.Role{role},
		}); err != nil {
			t.Fatal(err)
		}
	}
	return w
}

// withTasks switches callbacks to Step Functions on.
func withTasks(t *testing.T) func(*gate.Config) {
	master, err := ring.Parse(ring.NewMasterKey())
	must(t, err)
	return func(c *gate.Config) {
		c.Master = master
		c.Callbacks = []gate.CallbackInfo{{
			Type: gatehouse.CallbackStepFunctions, Tenants: []string{"default"},
			Check: func(*gatehouse.Callback) error { return nil },
		}}
	}
}

func proposalWith(c *gatehouse.Callback) *gatehouse.Proposal {
	return &gatehouse.Proposal{
		ActionType: "price_change", Connector: "shop", Operation: "update",
		Target:         gatehouse.Target{EntityType: "item", EntityRef: "walnuts", Version: "7"},
		ProposedChange: `{"amount":"1"}`, Callback: c, IdempotencyKey: "k-1",
	}
}

// TestCallbacksAreOff: without configuration a callback is unsupported, and the answer
// names the key that is missing.
func TestCallbacksAreOff(t *testing.T) {
	t.Parallel()
	token := &gatehouse.Callback{Type: gatehouse.CallbackStepFunctions, TaskToken: taskToken}
	on := func(tenant string) func(*gate.Config) {
		return func(c *gate.Config) {
			c.Callbacks = []gate.CallbackInfo{{
				Type: gatehouse.CallbackStepFunctions, Tenants: []string{tenant},
				Check: func(*gatehouse.Callback) error { return nil },
			}}
		}
	}
	for key, tt := range map[string]struct {
		callback *gatehouse.Callback
		option   func(*gate.Config)
	}{
		"callbacks.webhook": {
			&gatehouse.Callback{Type: gatehouse.CallbackWebhook, URL: "https://x.example"}, func(*gate.Config) {},
		},
		"callbacks.nats":           {&gatehouse.Callback{Type: gatehouse.CallbackNATS, Subject: "x.y"}, on("default")},
		"callbacks.step_functions": {token, func(*gate.Config) {}},
		"callbacks.tenants":        {token, on("acme")},
		"links.master_key":         {token, on("default")},
	} {
		w := callbackWorld(t, migratedfile.New(t), tt.option)
		_, _, err := w.Gate.Propose(w.As("bot"), proposalWith(tt.callback))
		var e *gatehouse.Error
		if !errors.As(err, &e) || e.Code != gatehouse.CodeUnsupported || !strings.Contains(e.Detail, key) ||
			len(e.Violations) != 1 || e.Violations[0].Pointer != "/callback/type" {
			t.Errorf("%s: %v", key, err)
		}
		page, err := w.Gate.ListActions(w.Admin(), gatehouse.ActionFilter{})
		if err != nil || len(page.Items) != 0 {
			t.Errorf("%s: %d actions are stored, %v", key, len(page.Items), err)
		}
	}
}

// TestTaskTokenIsSealed: the token is neither in the answer nor in any file of the store; it opens
// for its own action only; and a repeated proposal is compared by the hash of the token.
func TestTaskTokenIsSealed(t *testing.T) {
	t.Parallel()
	file := migratedfile.New(t)
	w := callbackWorld(t, file, withTasks(t))
	callback := gatehouse.Callback{Type: gatehouse.CallbackStepFunctions, TaskToken: taskToken}
	a, _, err := w.Gate.Propose(w.As("bot"), proposalWith(&callback))
	must(t, err)
	if callback.TaskToken != taskToken || callback.Sealed != "" {
		t.Error("the caller's proposal was changed")
	}
	found, err := w.Gate.FindAction(w.As("bot"), a.ID)
	must(t, err)
	for name, x := range map[string]*gatehouse.Action{"answer": a, "action": found} {
		b, err := json.Marshal(x)
		must(t, err)
		if strings.Contains(string(b), taskToken) || strings.Contains(string(b), x.Callback.Sealed) ||
			!strings.Contains(string(b), gatehouse.HashTaskToken(taskToken)) {
			t.Errorf("the %s: %s", name, b)
		}
		if token, err := w.Gate.TaskToken(x); err != nil || token != taskToken {
			t.Errorf("the %s opens as %q, %v", name, token, err)
		}
	}
	moved := *found
	moved.ID = "act_other"
	if token, err := w.Gate.TaskToken(&moved); !errors.Is(err, ring.ErrSealed) {
		t.Errorf("it opens for another action: %q, %v", token, err)
	}
	files, err := filepath.Glob(filepath.Join(filepath.Dir(file), "*"))
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		b, err := os.ReadFile(file)
		must(t, err)
		if strings.Contains(string(b), taskToken) {
			t.Errorf("%s has the token", filepath.Base(file))
		}
	}
	again, replayed, err := w.Gate.Propose(w.As("bot"), proposalWith(&callback))
	if err != nil || !replayed || again.ID != a.ID {
		t.Errorf("the same token: replayed %v, %v", replayed, err)
	}
	callback.TaskToken += "x"
	if _, _, err := w.Gate.Propose(w.As("bot"), proposalWith(&callback)); gatehouse.CodeOf(
		err,
	) != gatehouse.CodeDuplicateKey {
		t.Errorf("another token: %v", err)
	}
}

// TestEditKeepsTheCallback: the task that waits for a proposal gets the answer of the reviewer's
// revision.
func TestEditKeepsTheCallback(t *testing.T) {
	t.Parallel()
	w := callbackWorld(t, migratedfile.New(t), withTasks(t))
	callback := gatehouse.Callback{Type: gatehouse.CallbackStepFunctions, TaskToken: taskToken}
	a, _, err := w.Gate.Propose(w.As("bot"), proposalWith(&callback))
	must(t, err)
	b, err := w.Gate.Edit(
		w.As("ana"),
		a.ID,
		gatehouse.EditRequest{Digest: a.Digest, Note: "why", Patch: `{"amount":"2"}`},
	)
	must(t, err)
	if token, err := w.Gate.TaskToken(b); err != nil || token != taskToken {
		t.Errorf("the revision's task token opens as %q, %v", token, err)
	}
}

// TestWithdrawGone cancels a pending action once, with the reason, and leaves a decided
// one as it is.
func TestWithdrawGone(t *testing.T) {
	t.Parallel()
	w := callbackWorld(t, migratedfile.New(t))
	a, _, err := w.Gate.Propose(w.As("bot"), proposalWith(nil))
	must(t, err)
	for range 2 {
		must(t, w.Gate.WithdrawGone(t.Context(), "default", a.ID, "the workflow is gone"))
	}
	a = w.Find(a)
	if a.Status != gatehouse.StatusCanceled || a.FinishedAt == nil || a.Failure == nil ||
		*a.Failure != (gatehouse.Failure{Code: gatehouse.FailureWorkflowGone, Detail: "the workflow is gone"}) ||
		a.Approval.Status != gatehouse.ApprovalCanceled {
		t.Errorf("%s %+v %s", a.Status, a.Failure, a.Approval.Status)
	}
	b := w.Propose("walnuts", "price_change", 2)
	w.Decide(b, "ana", gatehouse.Approve)
	if err := w.Gate.WithdrawGone(t.Context(), "default", b.ID, "gone"); err != nil ||
		w.Find(b).Status != gatehouse.StatusApproved {
		t.Errorf("a decided one: %s, %v", w.Find(b).Status, err)
	}
	w.Number()
	var events []string
	err = w.Store.View(t.Context(), "default", func(tx gatehouse.ReadTx) error {
		entries, err := tx.ListEntries(0, 200)
		for _, e := range entries {
			if strings.Contains(string(e.Body), `"hitl.canceled"`) {
				events = append(events, string(e.Body))
			}
		}
		return err
	})
	if err != nil || len(events) != 1 || !strings.Contains(events[0], `"reason":"the workflow is gone"`) ||
		!slices.ContainsFunc(events, func(s string) bool { return strings.Contains(s, `"actor":"system"`) }) {
		t.Errorf("%v, %v", events, err)
	}
}
