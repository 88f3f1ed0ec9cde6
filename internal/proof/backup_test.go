package proof

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/pgtest"
)

// TestBackup follows the operators' page. It takes a backup of a working gate
// with the page's commands, continues, loses the store, and restores the old
// backup with the page's commands. Everything answered before the backup is
// there, a kept head reveals that the backup is old, and nothing that was sent
// since is sent again.
func TestBackup(t *testing.T) {
	t.Parallel()
	onEngines(t, func(t *testing.T, e engine) {
		t.Parallel()
		oneLeg(t, e, "backup", func(t *testing.T, l *leg) { backUpAndRestore(t, e, l) })
	})
}

// withoutDispatcher are the roles with which the page restores.
const withoutDispatcher = "api,sequencer,sweeper"

func backUpAndRestore(t *testing.T, e engine, l *leg) {
	w := newWorldOn(t, e, 5_000, "")
	ana := w.admin.create(t, "first", "person", "approver")
	load := newLoad(t, w, l.rng, 4)
	load.acks(t, crashAcks)
	w.roles(withoutDispatcher)
	queued := map[string]*gatehouse.Action{
		"shop":   w.agent.propose(t, price(w.sku(), "12.50")),
		"update": w.agent.propose(t, contact("kept-update", "update", "new")),
		"keyed":  w.agent.propose(t, contact("kept-keyed", "keyed", "new")),
		"once":   w.agent.propose(t, contact("kept-once", "once", "new")),
		"blind":  w.agent.propose(t, contact("kept-blind", "blind", "new")),
	}
	for _, a := range queued {
		must(t, ana.decide(a, "approved"), 200, "decided")
	}
	told := load.journal.soFar()
	p := newPage(t, w.gate)
	p.run("backed up", map[string]string{"sqlite": "gatehouse backup ", "postgres": "pg_dump "}[e.name])
	l.add("acknowledgements before the backup", told.acks)

	// The gate continues, and approved pushes are sent.
	w.roles("")
	for name, a := range queued {
		if got := w.admin.finished(t, a.ID); got.Status != gatehouse.StatusApplied || w.effects(t, a) != 1 {
			t.Fatalf("%s is %s: %+v", name, got.Status, got.Failure)
		}
	}
	load.fresh.Store(0)
	load.acks(t, crashAcks)
	load.stop()
	w.heal(t, 60*time.Second)
	l.add("acknowledgements lost with the store", load.journal.acks-told.acks)
	newest, err := w.cli(w.admin, "audit", "head", "--json")
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(p.dir, "newest.json"), newest)
	w.stop()

	r := p.place(w, e)
	p.run("checked", map[string]string{"sqlite": "doctor --deep --data ./restored", "postgres": "pg_restore "}[e.name])
	out, err := p.bash("gatehouse doctor --deep --held newest.json " +
		map[string]string{"sqlite": "--data ./restored", "postgres": "--database-url $RESTORED"}[e.name])
	if err == nil || !strings.Contains(out, "a head held elsewhere says") {
		t.Errorf("a store that has lost entries is not detected: %v\n%s", err, out)
	}

	p.served = time.Now().UTC().Format(time.RFC3339Nano)
	r.configure(w.gate)
	r.roles(withoutDispatcher)
	r.checkJournal(t, r.allActions(t), told)
	if out, err := r.cli(r.admin, "audit", "verify", "--held", filepath.Join(p.dir, "newest.json")); err == nil {
		t.Errorf("the served store is not detected as old: %s", out)
	}
	due, err := r.cli(r.admin, "push", "drain", "--limit", "1000")
	if err != nil {
		t.Fatal(err)
	}
	for name, a := range queued {
		if !strings.Contains(due, a.ID) {
			t.Errorf("%s is not shown as due:\n%s", name, due)
		}
	}
	p.gate = r.gate
	p.run("looked at", "mark-unknown --before 2026-11-20T10:00:00Z\n")
	if n := len(r.unknown(t)); n != 0 {
		t.Errorf("a dry run has marked %d", n)
	}
	p.exits(13, "marked", "mark-unknown --before 2026-11-20T10:00:00Z --mark")
	marked := r.unknown(t)
	l.add("pushes marked as unknown", len(marked))
	r.roles("")
	// The dispatcher runs again and sends none of these. A new action works.
	after := r.agent.propose(t, price(w.sku(), "13.50"))
	must(t, r.admin.decide(after, "approved"), 200, "decided")
	if got := r.admin.finished(t, after.ID); got.Status != gatehouse.StatusApplied {
		t.Errorf("an action proposed after the restore is %s", got.Status)
	}
	p.exits(13, "asked", "push ask")
	left := r.unknown(t)
	for name, a := range queued {
		push := r.admin.action(t, a.ID).Push
		_, isMarked := marked[push.ID]
		_, isLeft := left[push.ID]
		if asked := name == "shop"; !isMarked || isLeft == asked {
			t.Errorf("%s is marked: %v, and unknown after its target was asked: %v", name, isMarked, isLeft)
		}
	}
	for push, id := range left {
		outcome := map[bool]string{true: "applied", false: "failed"}[r.effects(t, r.admin.action(t, id)) > 0]
		if out, err := r.cli(r.admin, "push", "resolve", push, "--outcome", outcome, "--reason",
			"looked at the target"); err != nil {
			t.Errorf("resolve %s: %v\n%s", push, err, out)
		}
	}
	r.heal(t, 60*time.Second)
	for name := range queued {
		a := r.admin.action(t, queued[name].ID)
		calls := w.target.callsFor(a.IdempotencyKey)
		if want := map[bool]int{false: 1}[name == "shop"]; a.Status != gatehouse.StatusApplied || calls != want ||
			r.effects(t, a) != 1 {
			t.Errorf("%s is %s after %d calls with %d effects, expected applied after %d with 1", name, a.Status, calls,
				r.effects(t, a), want)
		}
	}
	r.onceEach(t)
	r.checkDoctor(t)
}

// onceEach checks that the targets had one effect per key.
func (w *world) onceEach(t *testing.T) {
	t.Helper()
	seen := 0
	w.target.mu.Lock()
	for key, n := range w.target.effects {
		if seen++; n != 1 {
			t.Errorf("%d effects under %s", n, key)
		}
	}
	w.target.mu.Unlock()
	for sku, i := range w.shop.items(t) {
		seen += len(i.keys)
		if len(i.keys) > 1 || i.version != 1+len(i.keys) {
			t.Errorf("%s is at version %d after the keys %v", sku, i.version, i.keys)
		}
	}
	if seen < 5 {
		t.Errorf("only %d effects", seen)
	}
}

// roles restarts the servers with some of the roles; "" means all.
func (g *gate) roles(roles string) {
	g.t.Helper()
	for _, s := range g.servers {
		s.args = nil
		if roles != "" {
			s.args = []string{"--roles", roles}
		}
		if s.cmd != nil {
			s.stop()
		}
		s.start()
	}
}

// page runs the shell blocks of the operators' page on backups, in a folder.
type page struct {
	t    testing.TB
	gate *gate
	dir  string
	bin  string // where gatehouse can be called by name
	// restored is the folder or database to restore into.
	restored string
	// served is the time at which the restored store was first served.
	served string
	blocks []string
}

func newPage(t testing.TB, g *gate) *page {
	t.Helper()
	p := &page{t: t, gate: g, dir: t.TempDir(), bin: t.TempDir()}
	if err := os.Symlink(binary, filepath.Join(p.bin, "gatehouse")); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile("../../docs/backup.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(text), "\n## Backup and restore\n")
	section, _, _ = strings.Cut(section, "\n## ")
	for i, part := range strings.Split(section, "\n```") {
		if block, ok := strings.CutPrefix(part, "sh\n"); ok && i%2 == 1 {
			p.blocks = append(p.blocks, block)
		}
	}
	if !strings.Contains(section, "--roles "+withoutDispatcher) {
		t.Errorf("the page does not restore with the roles %s", withoutDispatcher)
	}
	return p
}

// run runs the block of the page that contains a text.
func (p *page) run(what, holds string) {
	p.t.Helper()
	p.exits(0, what, holds)
}

// exits is run for a block that exits with a code.
func (p *page) exits(code int, what, holds string) {
	p.t.Helper()
	var found []string
	for _, b := range p.blocks {
		if strings.Contains(b+"\n", holds) {
			found = append(found, b)
		}
	}
	if len(found) != 1 {
		p.t.Fatalf("the page has %d blocks with %q", len(found), holds)
	}
	out, err := p.bash(found[0])
	got := 0
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		got = exit.ExitCode()
	} else if err != nil {
		got = -1
	}
	if got != code {
		p.t.Fatalf("%s: %v\n%s%s", what, err, found[0], out)
	}
}

// bash runs commands with the page's placeholders replaced, and returns their
// output.
func (p *page) bash(commands string) (string, error) {
	p.t.Helper()
	quoted := func(s string) string { return "'" + s + "'" }
	commands = strings.NewReplacer(
		"./gatehouse-data", quoted(p.gate.data), "/backup/", "./",
		"postgres://gatehouse@db/gatehouse", quoted(p.gate.dsn), "postgres://gatehouse@db/restored", quoted(p.restored),
		"$RESTORED", quoted(p.restored), "2026-11-20T10:00:00Z", p.served,
	).Replace(commands)
	cmd := exec.Command("bash", "-euo", "pipefail", "-c", commands)
	cmd.Dir = p.dir
	cmd.Env = append(os.Environ(), "PATH="+p.bin+":"+pgtest.Programs()+":"+os.Getenv("PATH"),
		"GATEHOUSE_URL="+p.gate.base(), "GATEHOUSE_KEY="+p.gate.admin.key, "GATEHOUSE_EDIT_TOKEN="+p.gate.admin.edit)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// place returns the gate that will serve the restored store, with the same
// targets.
func (p *page) place(w *world, e engine) *world {
	p.t.Helper()
	g := &gate{t: p.t, data: filepath.Join(p.dir, "restored")}
	if w.dsn != "" {
		g.data, g.dsn = p.t.TempDir(), e.database(p.t)
		p.restored = g.dsn
	}
	g.admin = &person{gate: g, name: w.admin.name, key: w.admin.key, edit: w.admin.edit}
	g.addServers(e)
	agent := *w.agent
	agent.gate = g
	return &world{gate: g, shop: w.shop, target: w.target, agent: &agent}
}

// unknown lists the pushes with an unknown outcome, with their actions.
func (g *gate) unknown(t *testing.T) map[string]string {
	t.Helper()
	out, err := g.cli(g.admin, "push", "list", "--status", "unknown", "--all")
	if err != nil {
		t.Fatal(err)
	}
	ids := map[string]string{}
	for line := range strings.Lines(out) {
		fields := strings.Split(line, "\t")
		ids[fields[0]] = fields[1]
	}
	return ids
}

// configure copies the files next to the store from the lost gate.
func (g *gate) configure(from *gate) {
	g.t.Helper()
	for _, name := range []string{"gatehouse.yaml", "policy.yaml"} {
		content, err := os.ReadFile(filepath.Join(from.data, name))
		if err != nil {
			g.t.Fatal(err)
		}
		write(g.t, filepath.Join(g.data, name), string(content))
	}
}
