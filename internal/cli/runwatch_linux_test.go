package cli

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/servetest"
	"github.com/gatehouse-dev/gatehouse/internal/term"
)

const watchedWorkflow = `name: watched
steps:
  - {id: ask, uses: approval, risk: med}
  - {id: paid, uses: wait, with: {event: paid}}
`

// TestWatchOnATerminal follows a run from its question to its end: one picture, redrawn in place,
// and finally the whole run.
func TestWatchOnATerminal(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	must(t, os.WriteFile(filepath.Join(dir, "hasty.yaml"), []byte("dispatch: {hold: 0s}\n"), 0o600))
	server := startDev(t, dir, "--config", "hasty.yaml")
	base := strings.TrimSuffix(server.api, "/api/v1")
	admin := servetest.MustClient(t, base, devEnv(t, dir, "admin"))
	olga, err := admin.CreatePrincipal(t.Context(), gatehouse.NewPrincipal{
		Name: "olga", Kind: gatehouse.KindPerson, Roles: []gatehouse.Role{gatehouse.RoleOperator, gatehouse.RoleProposer},
	})
	must(t, err)
	operator := servetest.MustClient(t, base, *olga)
	if _, _, err := operator.ApplyWorkflow(t.Context(), "watched", watchedWorkflow); err != nil {
		t.Fatal(err)
	}
	r, _, err := operator.StartRun(t.Context(), "watched", gatehouse.NewRun{})
	must(t, err)
	s := watch(t, base, olga, r.ID)
	s.sees("waits for people") // in the timeline, where a long wait for the event may hide it later
	d, err := admin.RunDetail(t.Context(), r.ID)
	if err != nil || len(d.Actions) != 1 {
		t.Fatalf("%v, %d actions", err, len(d.Actions))
	}
	if _, err := admin.Decide(t.Context(), d.Actions[0].ID,
		gatehouse.Decision{Decision: gatehouse.Approve, Digest: d.Actions[0].Digest}); err != nil {
		t.Fatal(err)
	}
	flat := s.until("sees the event waited for", func(flat string) bool {
		return strings.Contains(flat, "ask") && strings.Contains(flat, ": waiting ")
	})
	if strings.Count(flat, "watched "+r.ID) != 1 || strings.Contains(flat, "waiting_approval") {
		t.Errorf("the picture was not drawn in its place: %s", flat)
	}
	if _, err := operator.SignalRun(t.Context(), r.ID, "paid", `{}`); err != nil {
		t.Fatal(err)
	}
	flat = s.sees("watched: succeeded")
	s.ends(term.ExitDone)
	if strings.Contains(flat, "watched "+r.ID) || !strings.Contains(s.screen.flat(), "gatehouse evidence export "+r.ID) {
		t.Errorf("the end shows more than the whole run:\n%s", s.screen.text())
	}
	server.stop()
}

// watch starts gatehouse run watch with its output on a terminal.
func watch(t *testing.T, url string, who *gatehouse.Credentials, id string) *seat {
	t.Helper()
	s := &seat{t: t, news: make(chan struct{}, 1), ended: make(chan struct{}), screen: newScreen(45, 110)}
	s.cmd = exec.CommandContext(t.Context(), watched, "run", "watch", id, "--timeout", "60s")
	s.cmd.Env = cleanEnv("GATEHOUSE_URL="+url, "GATEHOUSE_KEY="+who.Key, "TERM=xterm-256color", "NO_COLOR=")
	s.start(45, 110)
	return s
}
