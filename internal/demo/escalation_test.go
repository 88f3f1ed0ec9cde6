package demo

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/client"
)

// slowGate is a gate at which the approval of the first clearance arrives after the first stage, and that of each
// further one arrives within it.
type slowGate struct {
	t       *testing.T
	url     string
	mu      sync.Mutex
	log     []string
	actions []*gatehouse.Action
}

func (g *slowGate) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	g.mu.Lock()
	defer g.mu.Unlock()
	path := strings.TrimPrefix(r.URL.Path, "/api/v1/proposed-actions")
	g.log = append(g.log, r.Method+" "+path)
	switch {
	case path == "/review/rev_1":
		fmt.Fprint(w, `name="nonce" value="n"`)
	case path == "/review/rev_1/approve":
		g.apply(g.actions[len(g.actions)-1], gatehouse.ViaLink)
	case path == "":
		a := &gatehouse.Action{ID: fmt.Sprintf("act_%d", len(g.actions)+1), Status: gatehouse.StatusPending}
		if err := json.NewDecoder(r.Body).Decode(&a.Proposal); err != nil {
			g.t.Error(err)
		}
		a.Approval, a.Digest = &gatehouse.Approval{Stage: 2}, a.ComputeDigest()
		g.actions = append(g.actions, a)
		g.answer(w, a)
	case path == "/act_1/decide":
		g.apply(g.actions[0], gatehouse.ViaAPI)
		g.answer(w, gatehouse.Answer{Code: gatehouse.Decided, Action: g.actions[0]})
	case strings.HasSuffix(path, "/decide"):
		w.Header().Set("Content-Type", "application/problem+json")
		w.WriteHeader(http.StatusForbidden)
		fmt.Fprintf(w, `{"code":%q}`, gatehouse.CodeRoleRequired)
	default:
		for _, a := range g.actions {
			if path == "/"+a.ID {
				g.answer(w, a)
			}
		}
	}
}

func (g *slowGate) apply(a *gatehouse.Action, via gatehouse.Channel) {
	a.Status, a.DecidedBy, a.DecidedVia = gatehouse.StatusApplied, "ben", via
}

func (g *slowGate) answer(w http.ResponseWriter, body any) {
	w.Header().Set("Content-Type", "application/json")
	if err := json.NewEncoder(w).Encode(body); err != nil {
		g.t.Error(err)
	}
}

func (g *slowGate) mails() (list []Mail) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, a := range g.actions {
		list = append(list, Mail{To: "ben@x", Text: a.ID + " " + g.url + "/review/rev_1?token=t Code: ABC123"})
	}
	return list
}

// quiet is a stage that shows nothing.
type quiet struct{}

func (quiet) Chapter(int, int, string) {}
func (quiet) Say(string)               {}
func (quiet) Settled(*Line)            {}
func (quiet) Ask(context.Context, string, *gatehouse.Action) (Choice, error) {
	return Undecided, nil
}

// TestEscalationOnASlowMachine: ben approves at once. If his approval arrives after the first stage nevertheless, it
// counts, and the situation continues with another item.
func TestEscalationOnASlowMachine(t *testing.T) {
	t.Parallel()
	g := &slowGate{t: t}
	server := httptest.NewServer(g)
	t.Cleanup(server.Close)
	g.url = server.URL
	api, err := client.New(server.URL, "gth_x")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	log, err := newJournal(filepath.Join(dir, JournalFile))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = log.Close() })
	if err := MakeLedger(t.Context(), filepath.Join(dir, LedgerFile)); err != nil {
		t.Fatal(err)
	}
	p := &play{
		Options: Options{Stage: quiet{}, Mails: g.mails}, journal: log, agent: api, ben: &reviewer{"ben", api, log},
		ledger: opened(t, filepath.Join(dir, LedgerFile)),
	}
	var l Line
	if err := escalation(t.Context(), p, &l); err != nil {
		t.Fatalf("%v\n%s", err, strings.Join(g.log, "\n"))
	}
	if l.Proposed != 2 || l.Decided != 2 || l.Applied != 2 || l.Refused != 1 {
		t.Errorf("%+v", l)
	}
	for i, r := range g.log {
		if r == "POST " && !strings.HasSuffix(g.log[i+1], "/decide") {
			t.Errorf("between the proposal and the approval: %s", g.log[i+1])
		}
	}
}
