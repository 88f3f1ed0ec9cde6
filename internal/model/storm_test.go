package model

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/dispatch"
	"github.com/gatehouse-dev/gatehouse/internal/gate"
	"github.com/gatehouse-dev/gatehouse/internal/wake"
)

const (
	clients     = 8
	perClient   = 28
	perHistory  = 10              // actions
	checkBudget = 5 * time.Minute // for one history; it takes milliseconds
)

// crowd is a set of clients of two gates on one database.
type crowd struct {
	t      testing.TB
	gates  []*gate.Gate
	people []*gatehouse.Principal // by client
	bot    *gatehouse.Principal
	skew   atomic.Int64 // nanoseconds that the clock is ahead of the wall clock
}

func (c *crowd) now() time.Time { return time.Now().Add(time.Duration(c.skew.Load())) }

// newCrowd opens the gates; wrap may wrap the store of a gate.
func newCrowd(t testing.TB, open opener, wrap func(gatehouse.Store) gatehouse.Store) *crowd {
	t.Helper()
	c := &crowd{t: t}
	targets, err := dispatch.NewRegistry(dispatch.Target{Name: "mute", Connector: newLedger()})
	c.must(err)
	for _, store := range open(t, c.now, 2) {
		c.gates = append(c.gates, gate.New(wrap(store), targets, &wake.Hub{},
			gate.Config{PolicySource: []byte(source(false))}, slog.New(slog.DiscardHandler)))
	}
	creds, err := c.gates[0].Bootstrap(context.Background())
	c.must(err)
	admin, err := c.gates[0].Authenticate(context.Background(), creds.Key)
	c.must(err)
	create := func(n gatehouse.NewPrincipal) *gatehouse.Principal {
		made, err := c.gates[0].CreatePrincipal(c.as(context.Background(), admin), n)
		c.must(err)
		p, err := c.gates[0].Authenticate(context.Background(), made.Key)
		c.must(err)
		return p
	}
	for i := range clients {
		n := gatehouse.NewPrincipal{Name: fmt.Sprint("client-", i), Kind: gatehouse.KindPerson,
			Roles: []gatehouse.Role{gatehouse.RoleApprover}}
		if person(i) != i {
			n.Person = fmt.Sprint("client-", person(i))
		}
		c.people = append(c.people, create(n))
	}
	c.bot = create(
		gatehouse.NewPrincipal{Name: "bot", Kind: gatehouse.KindAgent, Roles: []gatehouse.Role{gatehouse.RoleProposer}})
	return c
}

func (c *crowd) must(err error) {
	c.t.Helper()
	if err != nil {
		c.t.Fatal(err)
	}
}

func (c *crowd) as(ctx context.Context, p *gatehouse.Principal) context.Context {
	return gatehouse.NewContext(ctx,
		&gatehouse.Caller{Principal: p, StepUp: p.Kind == gatehouse.KindPerson, Via: gatehouse.ViaAPI})
}

// subject is one action of a history.
type subject struct {
	*gatehouse.Action
	mortal bool
}

func (c *crowd) subjects(random *rand.Rand) []subject {
	out := make([]subject, perHistory)
	for i := range out {
		kind := []string{price, pair, purge}[random.IntN(3)]
		p := c.proposal(kind)
		if out[i].mortal = random.IntN(5) == 0; out[i].mortal {
			p.ExpiresIn = gatehouse.Span(10 * time.Minute)
		}
		a, _, err := c.gates[0].Propose(c.as(context.Background(), c.bot), p)
		c.must(err)
		out[i].Action = a
	}
	return out
}

func (c *crowd) proposal(kind string) *gatehouse.Proposal {
	return &gatehouse.Proposal{
		ActionType: kind, Connector: "mute", Operation: "a", Target: gatehouse.Target{EntityType: "item", EntityRef: "x"},
		ProposedChange: `{"amount":"1"}`,
	}
}

// verbs are drawn uniformly. Approvals and reads are the most frequent.
var verbs = []string{
	"read", "read", "read", "read", "read", "read", "read", "read", "approve", "approve", "approve", "approve", "approve",
	"approve", "approve",
	"approve", "reject", "cancel", "revise",
}

// history lets all clients work on the same actions concurrently, and records
// requests, times and answers.
func (c *crowd) history(seed uint64) []porcupine.Operation {
	random := rand.New(rand.NewPCG(seed, 0))
	subjects := c.subjects(random)
	jump := random.IntN(perClient)
	var mu sync.Mutex
	var out []porcupine.Operation
	var all sync.WaitGroup
	begin, start := make(chan struct{}), time.Now()
	for client := range clients {
		random := rand.New(rand.NewPCG(seed, uint64(client)+1))
		all.Go(func() {
			<-begin
			for i := range perClient {
				if client == 0 && i == jump {
					c.skew.Add(int64(11 * time.Minute)) // the mortal actions expire about here
				}
				// All clients walk through the actions at about the same pace.
				n := min(max((i*perHistory)/perClient+random.IntN(3)-1, 0), perHistory-1)
				r := request{
					action: n, verb: verbs[random.IntN(len(verbs))], client: client, short: random.IntN(6) > 0,
					required: subjects[n].Approval.Required, mortal: subjects[n].mortal,
				}
				ctx, cancel := context.Background(), context.CancelFunc(func() {})
				if random.IntN(20) == 0 { // some clients give up soon
					ctx, cancel = context.WithTimeout(ctx, time.Duration(random.IntN(1000))*time.Microsecond)
				}
				o := porcupine.Operation{ClientId: client, Input: r, Call: int64(time.Since(start))}
				answer := c.ask(ctx, r, subjects[n].Action)
				o.Output, o.Return = answer, int64(time.Since(start))
				cancel()
				if answer == maybe {
					o.Return = math.MaxInt64
				}
				mu.Lock()
				out = append(out, o)
				mu.Unlock()
			}
		})
	}
	close(begin)
	all.Wait()
	return out
}

// ask makes one call, through the gate for the client's parity.
func (c *crowd) ask(ctx context.Context, r request, a *gatehouse.Action) string {
	gate := c.gates[r.client%len(c.gates)]
	me, bot := c.as(ctx, c.people[r.client]), c.as(ctx, c.bot)
	var answer string
	var err error
	switch r.verb {
	case "read":
		var found *gatehouse.Action
		if found, err = gate.FindAction(me, a.ID); err == nil {
			answer = fmt.Sprintf("%s %d", found.Status, found.Approval.Approvals())
		}
	case "cancel":
		var out *gatehouse.CancelAnswer
		if out, err = gate.Cancel(bot, a.ID); err == nil {
			answer = out.Code
		}
	case "revise":
		if _, err = gate.Revise(bot, a.ID, c.proposal(a.ActionType)); err == nil {
			answer = "revised"
		}
	default:
		answer, err = c.decide(me, gate, r, a)
	}
	var e *gatehouse.Error
	switch {
	case err == nil:
		return answer
	case errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) ||
		gatehouse.CodeOf(err) == gatehouse.CodeBusy:
		return maybe
	case !errors.As(err, &e):
		c.t.Errorf("%+v: %v", r, err)
		return maybe
	}
	return string(e.Code)
}

func (c *crowd) decide(ctx context.Context, g *gate.Gate, r request, a *gatehouse.Action) (string, error) {
	d := gatehouse.Decision{Decision: gatehouse.Approve, Digest: a.Digest}
	if a.Approval.Confirm != nil {
		d.Confirm = a.Approval.Confirm.Value
	}
	if r.verb == "reject" {
		d.Decision = gatehouse.Reject
	}
	if !r.short {
		out, err := g.Decide(ctx, a.ID, d)
		if err != nil {
			return "", err
		}
		return out.Code, nil
	}
	out, err := g.Answer(ctx, a.Approval.ID, d)
	switch {
	case err != nil:
		return "", err
	case out.Status == string(d.Decision):
		return "decided", nil
	}
	return out.Status, nil
}

// outcomes that every run must produce.
var outcomes = []string{
	"decided", "vote_recorded", "already_approved", "already_rejected", "already_decided", "not_awaiting_approval",
	"already_voted",
	"expired", "canceled", "already_canceled", "revised", "too_late", "read", maybe,
}

// TestLinearizable: whatever many clients do concurrently through two gates, a
// single gate that does one thing at a time could have given their answers.
func TestLinearizable(t *testing.T) {
	t.Parallel()
	histories := 30
	if long() {
		histories = 2000
	}
	for name, open := range engines(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newCrowd(t, open, func(s gatehouse.Store) gatehouse.Store { return s })
			first, words, calls := rand.Uint64(), map[string]int{}, 0
			for i := range histories {
				seed := first + uint64(i)
				h := c.history(seed)
				if got := verdict(h); got != porcupine.Ok {
					t.Fatalf("history of seed %d: %s\n%s", seed, got, explain(h))
				}
				calls += len(h)
				for word, n := range told(h) {
					words[word] += n
				}
			}
			t.Logf("%d histories of %d calls from seed %d on: %v", histories, clients*perClient, first, words)
			if share := succeeded(words) * 100 / calls; share < 60 {
				t.Errorf("only %d %% of the calls succeeded: the run does not count", share)
			}
			for _, want := range outcomes {
				if words[want] == 0 {
					t.Errorf("%q never happened: the run does not count", want)
				}
			}
		})
	}
}

// verdict asks porcupine. Anything except ok is a failure, unknown too.
func verdict(h []porcupine.Operation) porcupine.CheckResult {
	return porcupine.CheckOperationsTimeout(machine(), h, checkBudget)
}

// explain prints the calls on the first unexplainable action, in the order in
// which they began.
func explain(h []porcupine.Operation) string {
	for _, part := range machine().Partition(h) {
		if verdict(part) == porcupine.Ok {
			continue
		}
		slices.SortFunc(part, func(a, b porcupine.Operation) int { return cmp.Compare(a.Call, b.Call) })
		var out strings.Builder
		for _, o := range part {
			fmt.Fprintf(&out, "%12d %20d %+v -> %s\n", o.Call, o.Return, o.Input, o.Output)
		}
		return out.String()
	}
	return ""
}
