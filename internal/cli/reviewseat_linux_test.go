package cli

import (
	"bytes"
	"context"
	"database/sql"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/creack/pty"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/client"
	"github.com/gatehouse-dev/gatehouse/internal/gate"
	"github.com/gatehouse-dev/gatehouse/internal/serve"
	"github.com/gatehouse-dev/gatehouse/internal/servetest"
)

// inbox is a server with a shop and people, for reviews on a terminal.
type inbox struct {
	t     *testing.T
	n     *serve.Node
	s     *serve.Server
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

// openInbox serves only the API, so approved actions are not sent during the test.
func openInbox(t *testing.T) *inbox {
	t.Helper()
	dir := t.TempDir()
	shop, err := sql.Open("sqlite", "file:"+filepath.Join(dir, "shop.db")+"?_pragma=busy_timeout(5000)")
	must(t, err)
	t.Cleanup(func() { shop.Close() })
	for _, statement := range []string{
		`create table items (sku text primary key, name text, price text, currency text, note text, ` +
			`version integer not null)`,
		`insert into items values ('A', 'Lamp', '10.00', 'USD', '', 1), ('B', 'Vase', '20.00', 'USD', '', 1), ('C', ` +
			`'Clock', '30.00', 'USD', '', 1)`,
	} {
		if _, err := shop.ExecContext(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
	cfg := servetest.Config(t,
		`{connectors: {shop: {type: sql, dsn: "sqlite:`+filepath.Join(dir, "shop.db")+`",
  entities: {item: {table: items, key: sku, version: version, fields: {note: 1}}}}}, dispatch: {hold: 1h}}`)
	n := openNode(t, filepath.Join(dir, "data"), cfg)
	n.Gate = gate.New(n.Store, n.Registry, n.Hub, gate.Config{PolicySource: []byte(reviewPolicy),
		Hold: new(time.Hour)}, n.Log)
	s, err := serve.StartRoles(n, "127.0.0.1:0", []serve.Role{serve.RoleAPI})
	must(t, err)
	t.Cleanup(func() { _ = s.Close() })
	admin := servetest.Bootstrap(t, n.Gate)
	in := &inbox{t: t, n: n, s: s, shop: shop, admin: servetest.CallerContext(t, n.Gate, admin)}
	bot := in.principal("bot", gatehouse.KindAgent, gatehouse.RoleProposer)
	in.bot = in.client(bot)
	return in
}

func (in *inbox) principal(name string, kind gatehouse.Kind, roles ...gatehouse.Role) *gatehouse.Credentials {
	in.t.Helper()
	c, err := in.n.Gate.CreatePrincipal(in.admin, gatehouse.NewPrincipal{Name: name, Kind: kind, Roles: roles})
	must(in.t, err)
	return c
}

func (in *inbox) client(c *gatehouse.Credentials) *client.Client {
	in.t.Helper()
	return servetest.MustClient(in.t, in.s.URL, *c)
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
		CurrentState:   gatehouse.MustJSON(map[string]string{"price": from, "currency": "USD"}),
		ProposedChange: gatehouse.MustJSON(map[string]string{"price": to}),
		Rationale:      "the supplier raised its cost",
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
		ActionType: "create_item", Operation: "insert", Target: gatehouse.Target{EntityRef: sku},
		ProposedChange: gatehouse.MustJSON(map[string]string{"name": name}),
	})
}

func (in *inbox) wipe(skus ...string) *gatehouse.Action {
	in.t.Helper()
	return in.propose(&gatehouse.Proposal{
		ActionType: "bulk_delete", Operation: "bulk_delete", Target: gatehouse.Target{EntityRefs: skus}, ProposedChange: `{}`,
	})
}

// want checks the state of an action on the server.
func (in *inbox) want(a *gatehouse.Action, status gatehouse.Status) *gatehouse.Action {
	in.t.Helper()
	now, err := in.bot.FindAction(in.t.Context(), a.ID)
	must(in.t, err)
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
	s.cmd = exec.CommandContext(in.t.Context(), watched, append([]string{"review"}, o.args...)...)
	s.cmd.Env = cleanEnv(
		append([]string{"GATEHOUSE_URL=" + in.s.URL, "GATEHOUSE_KEY=" + who.Key, "TERM=xterm-256color", "NO_COLOR=",
			"VISUAL=", "EDITOR="}, o.env...)...)
	if o.token {
		s.cmd.Env = append(s.cmd.Env, "GATEHOUSE_EDIT_TOKEN="+who.EditToken)
	}
	if o.rows == 0 {
		o.rows, o.columns = 30, 100
	}
	s.screen = newScreen(o.rows, o.columns)
	s.cmd.Stdout = &s.stdout
	s.start(o.rows, o.columns)
	return s
}

// start starts the command on a terminal, and draws what it writes on the screen.
func (s *seat) start(rows, columns int) {
	s.t.Helper()
	tty, err := pty.StartWithSize(s.cmd, &pty.Winsize{Rows: uint16(rows), Cols: uint16(columns)})
	must(s.t, err)
	s.tty = tty
	s.t.Cleanup(func() {
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
	deadline := time.After(time.Minute)
	for {
		s.mu.Lock()
		flat, text, odd := s.screen.flat(), s.screen.text(), s.screen.odd
		s.mu.Unlock()
		if len(odd) > 0 {
			s.t.Fatalf("the terminal got unknown sequences: %v", odd)
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

// ends waits until the program exits, and returns what went to stdout.
func (s *seat) ends(code int) string {
	s.t.Helper()
	select {
	case <-s.ended:
	case <-time.After(time.Minute):
		s.t.Fatalf("review does not end:\n%s", s.screen.text())
	}
	_ = s.cmd.Wait()
	if got := s.cmd.ProcessState.ExitCode(); got != code {
		s.t.Errorf("exit code %d, want %d:\n%s", got, code, s.screen.text())
	}
	return s.stdout.String()
}
