package main

import (
	"bytes"
	"context"
	"database/sql"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/creack/pty"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/client"
	"github.com/gatehouse-dev/gatehouse/internal/app"
	"github.com/gatehouse-dev/gatehouse/internal/config"
)

// inbox is a server with a shop and people, for reviews on a terminal.
type inbox struct {
	t     *testing.T
	n     *node
	s     *server
	admin context.Context
	shop  *sql.DB
	bot   *client.Client
}

const reviewPolicy = `version: 1
risk: {note: 2, price_change: 3, create_item: 4, bulk_delete: 5}
approvals:
  1: {required: 1, roles: [approver], expiry: 24h}
  2: {required: 1, roles: [approver], expiry: 24h}
  3: {required: 1, roles: [approver], expiry: 24h}
  4: {required: 1, roles: [approver], expiry: 24h}
  5: {required: 2, roles: [approver], expiry: 24h}
rules: []
`

// openInbox serves the API alone: what is approved rests until the test ends.
func openInbox(t *testing.T) *inbox {
	t.Helper()
	dir := t.TempDir()
	shop, err := sql.Open("sqlite", "file:"+filepath.Join(dir, "shop.db")+"?_pragma=busy_timeout(5000)")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { shop.Close() })
	for _, statement := range []string{
		`create table items (sku text primary key, name text, price text, currency text, note text, version integer not null)`,
		`insert into items values ('A', 'Lamp', '10.00', 'USD', '', 1), ('B', 'Vase', '20.00', 'USD', '', 1), ('C', 'Clock', '30.00', 'USD', '', 1)`,
	} {
		if _, err := shop.ExecContext(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
	cfg, err := config.Parse("gatehouse.yaml", []byte(
		"connectors: {shop: {type: sql, dsn: \"sqlite:"+filepath.Join(dir, "shop.db")+"\", entities: {item: {table: items, key: sku, version: version}}}}\ndispatch: {hold: 1h}\n"))
	if err != nil {
		t.Fatal(err)
	}
	n, err := openNode(t.Context(), filepath.Join(dir, "data"), cfg, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	n.gate = app.New(n.store, n.registry, n.hub, app.Config{PolicySource: []byte(reviewPolicy), Hold: new(time.Hour)}, n.log)
	s, err := startRoles(n, "127.0.0.1:0", []role{roleAPI})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	admin, err := n.gate.Bootstrap(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	in := &inbox{t: t, n: n, s: s, shop: shop, admin: adminContext(t, n, admin)}
	bot := in.principal("bot", gatehouse.KindAgent, gatehouse.RoleProposer)
	in.bot = in.client(bot)
	return in
}

func (in *inbox) principal(name string, kind gatehouse.Kind, roles ...gatehouse.Role) *gatehouse.Credentials {
	in.t.Helper()
	c, err := in.n.gate.CreatePrincipal(in.admin, gatehouse.NewPrincipal{Name: name, Kind: kind, Roles: roles})
	if err != nil {
		in.t.Fatal(err)
	}
	return c
}

func (in *inbox) client(c *gatehouse.Credentials) *client.Client {
	in.t.Helper()
	api, err := client.New(in.s.URL, c.Key, client.WithEditToken(c.EditToken))
	if err != nil {
		in.t.Fatal(err)
	}
	return api
}

func (in *inbox) propose(p *gatehouse.Proposal) *gatehouse.Action {
	in.t.Helper()
	p.Connector = "shop"
	p.Target.EntityType = "item"
	a, _, err := in.bot.Propose(in.t.Context(), p)
	if err != nil || a.Status != gatehouse.StatusPending {
		in.t.Fatalf("%v: %+v", err, a)
	}
	return a
}

func (in *inbox) price(sku, from, to string) *gatehouse.Action {
	in.t.Helper()
	return in.propose(&gatehouse.Proposal{
		ActionType: "price_change", Operation: "update", Target: gatehouse.Target{EntityRef: sku, Version: "1"},
		CurrentState: gatehouse.MustJSON(map[string]string{"price": from, "currency": "USD"}), ProposedChange: gatehouse.MustJSON(map[string]string{"price": to}),
		Rationale: "the supplier raised its cost",
	})
}

func (in *inbox) note(sku, text string) *gatehouse.Action {
	in.t.Helper()
	return in.propose(&gatehouse.Proposal{
		ActionType: "note", Operation: "update", Target: gatehouse.Target{EntityRef: sku, Version: "1"},
		CurrentState: `{"note":""}`, ProposedChange: gatehouse.MustJSON(map[string]string{"note": text}),
	})
}

func (in *inbox) item(sku, name string) *gatehouse.Action {
	in.t.Helper()
	return in.propose(&gatehouse.Proposal{
		ActionType: "create_item", Operation: "insert", Target: gatehouse.Target{EntityRef: sku}, ProposedChange: gatehouse.MustJSON(map[string]string{"name": name}),
	})
}

func (in *inbox) wipe(skus ...string) *gatehouse.Action {
	in.t.Helper()
	return in.propose(&gatehouse.Proposal{
		ActionType: "bulk_delete", Operation: "bulk_delete", Target: gatehouse.Target{EntityRefs: skus}, ProposedChange: `{}`,
	})
}

// want checks how an action stands on the server.
func (in *inbox) want(a *gatehouse.Action, status gatehouse.Status) *gatehouse.Action {
	in.t.Helper()
	now, err := in.bot.FindAction(in.t.Context(), a.ID)
	if err != nil {
		in.t.Fatal(err)
	}
	if now.Status != status {
		in.t.Errorf("%s %s is %s, want %s", a.ActionType, a.ID, now.Status, status)
	}
	return now
}

// seat is a person at a terminal.
type seat struct {
	t      *testing.T
	cmd    *exec.Cmd
	tty    *os.File
	stdout bytes.Buffer
	mu     sync.Mutex
	screen *screen
	news   chan struct{} // something was drawn
	ended  chan struct{}
}

type seatOptions struct {
	rows, columns int
	token         bool // in the environment
	env           []string
	args          []string
}

// review starts gatehouse review on a terminal.
func (in *inbox) review(who *gatehouse.Credentials, o seatOptions) *seat {
	in.t.Helper()
	s := &seat{t: in.t, news: make(chan struct{}, 1), ended: make(chan struct{})}
	s.cmd = exec.CommandContext(in.t.Context(), "gatehouse", append([]string{"review"}, o.args...)...)
	s.cmd.Env = cleanEnv(append([]string{"GATEHOUSE_URL=" + in.s.URL, "GATEHOUSE_KEY=" + who.Key, "TERM=xterm-256color", "NO_COLOR=", "VISUAL=", "EDITOR="}, o.env...)...)
	if o.token {
		s.cmd.Env = append(s.cmd.Env, "GATEHOUSE_EDIT_TOKEN="+who.EditToken)
	}
	if o.rows == 0 {
		o.rows, o.columns = 30, 100
	}
	s.screen = newScreen(o.rows, o.columns)
	s.cmd.Stdout = &s.stdout
	tty, err := pty.StartWithSize(s.cmd, &pty.Winsize{Rows: uint16(o.rows), Cols: uint16(o.columns)})
	if err != nil {
		in.t.Fatal(err)
	}
	s.tty = tty
	in.t.Cleanup(func() {
		if s.cmd.ProcessState == nil {
			_ = s.cmd.Process.Kill()
		}
		tty.Close()
		<-s.ended
	})
	go func() {
		defer close(s.ended)
		b := make([]byte, 4096)
		for {
			n, err := tty.Read(b)
			s.mu.Lock()
			_, _ = s.screen.Write(b[:n])
			s.mu.Unlock()
			select {
			case s.news <- struct{}{}:
			default:
			}
			if err != nil {
				return
			}
		}
	}()
	return s
}

// sees waits until the screen shows a text, whatever its line ends, and
// returns the screen.
func (s *seat) sees(text string) string {
	s.t.Helper()
	return s.until("sees "+text, func(flat string) bool { return strings.Contains(flat, text) })
}

// ready waits until the card's keys act.
func (s *seat) ready() string {
	s.t.Helper()
	return s.until("is ready", func(flat string) bool { return strings.Contains(flat, "· d reject ·") })
}

func (s *seat) until(what string, ok func(flat string) bool) string {
	s.t.Helper()
	deadline := time.After(30 * time.Second)
	for {
		s.mu.Lock()
		flat, text, odd := s.screen.flat(), s.screen.text(), s.screen.odd
		s.mu.Unlock()
		if len(odd) > 0 {
			s.t.Fatalf("the terminal was sent what it does not know: %v", odd)
		}
		if ok(flat) {
			return flat
		}
		select {
		case <-s.news:
		case <-s.ended:
			s.mu.Lock()
			flat, text = s.screen.flat(), s.screen.text()
			s.mu.Unlock()
			if ok(flat) {
				return flat
			}
			s.t.Fatalf("review ended before the person %s:\n%s", what, text)
		case <-deadline:
			s.t.Fatalf("the person never %s:\n%s", what, text)
		}
	}
}

// types writes keys.
func (s *seat) types(keys string) {
	s.t.Helper()
	if _, err := s.tty.WriteString(keys); err != nil {
		s.t.Fatal(err)
	}
}

// ends waits until it exits, and returns what went to stdout.
func (s *seat) ends(code int) string {
	s.t.Helper()
	<-s.ended
	_ = s.cmd.Wait()
	if got := s.cmd.ProcessState.ExitCode(); got != code {
		s.t.Errorf("exit code %d, want %d:\n%s", got, code, s.screen.text())
	}
	return s.stdout.String()
}

const enter = "\r"

// TestReviewLadder goes through one action of each level, from L5 to L2.
func TestReviewLadder(t *testing.T) {
	t.Parallel()
	in := openInbox(t)
	ben := in.principal("ben", gatehouse.KindPerson, gatehouse.RoleApprover)
	note, price, item, wipe := in.note("A", "on the shelf"), in.price("B", "20.00", "21.50"), in.item("D", "Chair"), in.wipe("A", "C")

	s := in.review(ben, seatOptions{args: []string{"--yes"}})
	s.sees("1 of 4 · L5 destructive or bulk")
	s.sees("Delete 2 items")
	s.sees("A, C")
	s.ready()
	s.types("a")
	s.sees("Type 2, the number of item records affected")
	s.types("3" + enter)
	s.sees("That is not the value asked for.")
	s.types("\x1b[200~2\x1b[201~")
	s.sees("This is typed by hand.")
	s.types("2" + enter)
	s.sees("Your edit token")
	s.types("gte_wrong" + enter)
	s.sees("(edit_token_required)")
	in.want(wipe, gatehouse.StatusPending)
	s.types("a")
	s.sees("Type 2")
	s.types("2" + enter)
	s.sees("Your edit token")
	s.types(ben.EditToken)
	if shown := s.sees("••••"); strings.Contains(shown, ben.EditToken) {
		t.Error("the edit token is on the screen")
	}
	s.types(enter)
	s.sees("Your vote counts; 1 of 2 approvals are there.")

	s.sees("2 of 4 · L4")
	s.sees("Create item D with name Chair")
	s.ready()
	s.types("a")
	s.sees("Type the new name Chair")
	s.types("Chair" + enter)
	s.sees("Your edit token")
	s.types(ben.EditToken + enter)
	s.sees("Approved: Create item D.")

	// --yes spares L3 the question, not the edit token, which is asked once.
	s.sees("3 of 4 · L3")
	s.sees("Change price of B from 20.00 to 21.50 USD; reversible")
	s.ready()
	s.types("a")
	s.sees("Your edit token")
	s.types(ben.EditToken + enter)
	s.sees("Approved: Change price of B. It rests 1 h before it is sent: u undoes it.")

	s.sees("4 of 4 · L2")
	s.ready()
	s.types("a")
	s.sees("Approved: Change note of A")
	s.sees("That was all.")
	s.until("can undo", func(flat string) bool { return strings.Contains(flat, "r again") })
	s.types("u")
	s.sees("Undone: " + note.ID + " is canceled")
	s.types("q")
	out := s.ends(0)

	in.want(note, gatehouse.StatusCanceled)
	in.want(price, gatehouse.StatusApproved)
	in.want(item, gatehouse.StatusApproved)
	if a := in.want(wipe, gatehouse.StatusPending); a.Approval.Approvals() != 1 {
		t.Errorf("%d approvals", a.Approval.Approvals())
	}
	want := wipe.ID + "\tvote_recorded\n" + item.ID + "\tapproved\n" + price.ID + "\tapproved\n" + note.ID + "\tapproved\n" + note.ID + "\tcanceled\n"
	if out != want {
		t.Errorf("printed\n%s\nwant\n%s", out, want)
	}
}

// TestReviewByKeys: moving, L3 by its named button, reasons, why, help.
func TestReviewByKeys(t *testing.T) {
	t.Parallel()
	in := openInbox(t)
	ben := in.principal("ben", gatehouse.KindPerson, gatehouse.RoleApprover)
	first, second := in.price("A", "10.00", "12.50"), in.price("B", "20.00", "19.00")

	s := in.review(ben, seatOptions{token: true, args: []string{"--json"}})
	s.sees("1 of 2")
	s.sees(`~ price "10.00" → "12.50" (+2.50 USD)`)
	s.sees("… 1 field is unchanged; enter shows them")
	s.sees("Rationale, in the words of bot")
	s.types(enter)
	s.sees(`/currency "USD" (unchanged)`)
	s.types("w")
	s.sees("Policy: needs_approval")
	s.types("?")
	s.sees("undo your last approval, while it rests")
	s.types("x")
	s.sees("1 of 2")
	s.types("j")
	s.sees("2 of 2")
	s.sees("Change price of B from 20.00 to 19.00 USD")
	s.types("j")
	s.sees("That was all.")
	s.types("kk")
	s.sees("1 of 2")
	s.ready()
	s.types("a")
	s.sees("Enter: Change price to 12.50 USD Esc: back")
	s.types("a") // is not Enter
	s.types("\x1b")
	s.sees("Nothing was sent.")
	in.want(first, gatehouse.StatusPending)
	s.types("a")
	s.sees("Enter: Change price to 12.50 USD")
	s.types(enter)
	s.sees("Approved: Change price of A.")
	s.sees("2 of 2")
	s.ready()
	s.types("d")
	s.sees("Why do you reject it?")
	s.types(enter)
	s.sees("An answer is needed")
	s.types("the list says 19.90" + enter)
	s.sees("Rejected: Change price of B.")
	s.types("q")
	out := s.ends(0)

	in.want(first, gatehouse.StatusApproved)
	if a := in.want(second, gatehouse.StatusRejected); a.Approval.Votes[0].Notes != "the list says 19.90" || a.Approval.Votes[0].Via != gatehouse.ViaCLI {
		t.Errorf("%+v", a.Approval.Votes)
	}
	squeezed := regexp.MustCompile(`\s`).ReplaceAllString(out, "")
	if want := `{"items":[{"action_id":"` + first.ID + `","result":"approved"},{"action_id":"` + second.ID + `","result":"rejected"}]}`; squeezed != want {
		t.Errorf("printed %s, want %s", squeezed, want)
	}
}

// TestReviewConflicts: somebody else is first, and the target changes.
func TestReviewConflicts(t *testing.T) {
	t.Parallel()
	in := openInbox(t)
	ben := in.principal("ben", gatehouse.KindPerson, gatehouse.RoleApprover)
	cleo := in.client(in.principal("cleo", gatehouse.KindPerson, gatehouse.RoleApprover))
	first, second := in.price("A", "10.00", "12.50"), in.price("B", "20.00", "19.00")

	s := in.review(ben, seatOptions{token: true, args: []string{"-y"}})
	s.sees("1 of 2")
	s.ready()
	if _, err := cleo.Decide(t.Context(), first.ID, gatehouse.Decision{Decision: gatehouse.Reject, Notes: "no"}); err != nil {
		t.Fatal(err)
	}
	s.types("a")
	s.sees("Somebody was first: rejected by cleo")
	s.sees("rejected (cleo)")
	s.types("a")
	s.sees("This is decided; j goes on.")

	s.types("j")
	s.sees("2 of 2")
	s.ready()
	if _, err := in.shop.ExecContext(t.Context(), `update items set price = '22.00', version = 2 where sku = 'B'`); err != nil {
		t.Fatal(err)
	}
	s.types("a")
	s.sees("(target_changed)")
	s.sees("If it is right nonetheless, a approves it.")
	in.want(second, gatehouse.StatusPending)
	s.types("a")
	s.sees("Approved: Change price of B.")
	s.types("q")
	s.ends(0)
	in.want(second, gatehouse.StatusApproved)
}

// TestReviewShowsAllFirst: what was not on the screen cannot be approved.
func TestReviewShowsAllFirst(t *testing.T) {
	t.Parallel()
	in := openInbox(t)
	ben := in.principal("ben", gatehouse.KindPerson, gatehouse.RoleApprover)
	var text strings.Builder
	for i := range 60 {
		text.WriteString("line " + string(rune('a'+i%26)) + "\n")
	}
	long := in.note("A", text.String()+"the last line")

	s := in.review(ben, seatOptions{token: true, rows: 20, columns: 60})
	s.sees("1 of 1")
	s.sees("space shows more of the change")
	s.ready()
	s.types("a")
	s.sees("of the change not yet seen")
	s.types("\x1b[F") // the end, past what lies between
	s.sees("digest")
	s.types("a")
	s.sees("of the change not yet seen")
	s.types("\x1b[H")
	for range 4 {
		s.sees("1 of 1")
		s.types(" ")
	}
	s.sees("the last line")
	s.sees("a approve · d reject")
	in.want(long, gatehouse.StatusPending)
	s.types("a")
	s.sees("Approved: Change note of A")
	s.types("q")
	s.ends(0)
	in.want(long, gatehouse.StatusApproved)
}

// TestReviewNarrow: a narrow screen without colours cuts nothing.
func TestReviewNarrow(t *testing.T) {
	t.Parallel()
	in := openInbox(t)
	ben := in.principal("ben", gatehouse.KindPerson, gatehouse.RoleApprover)
	price := in.price("A", "10.00", "12.50")
	s := in.review(ben, seatOptions{token: true, rows: 24, columns: 26, env: []string{"NO_COLOR=1"}})
	flat := s.sees("1 of 1")
	s.until("sees the change", func(flat string) bool {
		return strings.Contains(strings.ReplaceAll(flat, " ", ""), `~price"10.00"→"12.50"(+2.50USD)`)
	})
	s.ready()
	s.types("a")
	s.sees("Enter: Change price to 12.50 USD Esc: back")
	s.types(enter)
	s.sees("Approved: Change price of A.")
	s.types("\x1b")
	s.ends(0)
	in.want(price, gatehouse.StatusApproved)
	if s.screen.colored {
		t.Errorf("there are colours in spite of NO_COLOR:\n%s", flat)
	}
}

func TestReviewInColor(t *testing.T) {
	t.Parallel()
	in := openInbox(t)
	ben := in.principal("ben", gatehouse.KindPerson, gatehouse.RoleApprover)
	in.price("A", "10.00", "12.50")
	s := in.review(ben, seatOptions{token: true})
	s.sees("1 of 1")
	s.types("q")
	s.ends(0)
	if !s.screen.colored {
		t.Error("there are no colours")
	}
}

// TestReviewSecondVoteIsBlind: at L5 the second person gives a reason before
// seeing the first one's.
func TestReviewSecondVoteIsBlind(t *testing.T) {
	t.Parallel()
	in := openInbox(t)
	ben := in.principal("ben", gatehouse.KindPerson, gatehouse.RoleApprover)
	cleo := in.client(in.principal("cleo", gatehouse.KindPerson, gatehouse.RoleApprover))
	wipe := in.wipe("A", "B")
	_, err := cleo.Decide(t.Context(), wipe.ID, gatehouse.Decision{
		Decision: gatehouse.Approve, Digest: wipe.Digest, Confirm: wipe.Approval.Confirm.Value, Notes: "out of range",
	})
	if err != nil {
		t.Fatal(err)
	}
	s := in.review(ben, seatOptions{token: true, rows: 60, columns: 100})
	s.sees("1 of 1")
	if flat := s.ready(); strings.Contains(flat, "out of range") || strings.Contains(flat, "cleo") {
		t.Errorf("the first vote is shown: %s", flat)
	}
	s.types("a")
	s.sees("Type 2")
	s.types("2" + enter)
	s.sees("Why do you approve it?")
	s.types("discontinued" + enter)
	s.sees("Your edit token") // although it is in the environment
	s.types(ben.EditToken + enter)
	s.sees("Approved: Delete 2 items.")
	s.types("q")
	s.ends(0)
	if a := in.want(wipe, gatehouse.StatusApproved); a.Approval.Votes[1].Notes != "discontinued" {
		t.Errorf("%+v", a.Approval.Votes)
	}
}

// TestReviewEdits: what the editor leaves becomes a revision.
func TestReviewEdits(t *testing.T) {
	t.Parallel()
	in := openInbox(t)
	eve := in.principal("eve", gatehouse.KindPerson, gatehouse.RoleApprover, gatehouse.RoleProposer)
	price := in.price("A", "10.00", "12.50")
	editor := filepath.Join(t.TempDir(), "editor")
	if err := os.WriteFile(editor, []byte("#!/bin/sh\nsed -i 's/12\\.50/12.75/' \"$1\"\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	s := in.review(eve, seatOptions{token: true, env: []string{"EDITOR=" + editor}})
	s.sees("1 of 1")
	s.ready()
	s.types("e")
	s.sees("Enter: replace it by your revision, which somebody else decides")
	s.types(enter)
	s.sees("Replaced by act_")
	s.types("q")
	s.ends(0)
	old := in.want(price, gatehouse.StatusSuperseded)
	revised, err := in.bot.FindAction(t.Context(), old.Superseded)
	if err != nil || revised.ProposedChange != `{"price":"12.75"}` || revised.ProposedBy != "eve" {
		t.Errorf("%+v, %v", revised, err)
	}
}

func TestReviewNeedsATerminal(t *testing.T) {
	t.Parallel()
	cmd := exec.CommandContext(t.Context(), "gatehouse", "review")
	cmd.Env = cleanEnv("GATEHOUSE_URL=http://127.0.0.1:1", "GATEHOUSE_KEY=gth_x")
	out, _ := cmd.CombinedOutput()
	if code := cmd.ProcessState.ExitCode(); code != exitUsage || !strings.Contains(string(out), "needs a terminal as its stdin") {
		t.Errorf("exit code %d, %s", code, out)
	}
}

// TestReviewOfNothing ends at once, and keeps out what others decide.
func TestReviewOfNothing(t *testing.T) {
	t.Parallel()
	in := openInbox(t)
	ben := in.principal("ben", gatehouse.KindPerson, gatehouse.RoleApprover)
	s := in.review(ben, seatOptions{token: true})
	s.ends(0)
	if text := s.screen.flat(); !strings.Contains(text, "Nothing waits for a decision.") {
		t.Errorf("got %s", text)
	}
	viewer := in.principal("vic", gatehouse.KindPerson, gatehouse.RoleViewer)
	s = in.review(viewer, seatOptions{})
	s.ends(exitNotAllowed)
	if text := s.screen.flat(); !strings.Contains(text, "only a person with the role approver decides") {
		t.Errorf("got %s", text)
	}
}
