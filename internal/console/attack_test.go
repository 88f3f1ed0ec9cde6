package console_test

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/console"
)

// longChange has more fields than a page shows at first.
func longChange(p *gatehouse.Proposal) {
	var change strings.Builder
	for i := range 2000 {
		fmt.Fprintf(&change, `,"f%04d":%d`, i, i)
	}
	p.CurrentState, p.ProposedChange = "", gatehouse.JSON("{"+change.String()[1:]+"}")
}

// TestHiddenContentLockIsTheServers posts an approval that the page does not offer: the server
// refuses it.
func TestHiddenContentLockIsTheServers(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	bot := w.agent("bot")
	a := w.propose(bot, longChange)
	ana, ben := w.signIn("ana", gatehouse.RoleApprover), w.signIn("ben", gatehouse.RoleApprover)
	path := "/actions/" + a.ID
	ana.post(path+"/decide",
		decision(a, gatehouse.Approve)...).want(http.StatusUnprocessableEntity).has(testid("hidden-lock"), testid("outcome"))
	ana.post(path+"/decide?full=1",
		decision(a, gatehouse.Approve, "full", "1", "shown", "1")...).want(http.StatusUnprocessableEntity)
	ana.post("/inbox/bulk", "decision", "approved", "item", a.ID+" "+string(a.Digest)).want(200).has("skipped")
	proof := func(b *browser, id string) string {
		_, rest, ok := strings.Cut(b.get("/actions/"+id+"?full=1").body, `name="shown" value="`)
		if !ok {
			t.Fatal("the whole page has no proof that it was shown")
		}
		return rest[:strings.IndexByte(rest, '"')]
	}
	other := w.propose(bot, func(p *gatehouse.Proposal) { longChange(p); p.Target.EntityRef = "SKU-2" })
	for who, foreign := range map[string]string{"another person's": proof(ben, a.ID),
		"another action's": proof(ana, other.ID)} {
		ana.post(path+"/decide", decision(a, gatehouse.Approve, "shown", foreign)...).want(http.StatusUnprocessableEntity)
		if got := w.action(a.ID); got.Status != gatehouse.StatusPending {
			t.Fatalf("%s page made it %s", who, got.Status)
		}
	}
	own := proof(ana, a.ID)
	// A refusal for another reason still shows the full change.
	w.mu.Lock()
	w.drift = true
	w.mu.Unlock()
	ana.post(path+"/decide", decision(a, gatehouse.Approve, "shown", own)...).want(http.StatusConflict).has("f1999",
		testid("acknowledge"), `name="shown"`)
	ana.post(path+"/decide", decision(a, gatehouse.Approve, "shown", own, "acknowledge_stale", "yes")...).want(200)
	if got := w.action(a.ID); got.Status != gatehouse.StatusApproved {
		t.Errorf("the action is %s", got.Status)
	}
	ana.post("/actions/"+other.ID+"/decide", decision(other, gatehouse.Reject, "notes", "unread")...).want(200)
}

// TestBulkShowsAllThatIsDecided checks that the bulk page shows everything that an item's own page
// shows.
func TestBulkShowsAllThatIsDecided(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a := w.propose(w.agent("bot"), func(p *gatehouse.Proposal) {
		p.ArtifactDiff = &gatehouse.ArtifactDiff{Type: "unified_diff",
			Text: "--- a\n+++ b\n@@ -1 +1 @@\n-old line\n+rm -rf everything\n"}
	})
	ana := w.signIn("ana", gatehouse.RoleApprover)
	ana.get("/inbox/bulk?pick="+a.ID).want(200).has(testid("bulk-approve"), "rm -rf everything", "SKU-1042", "version")
	long := w.propose(w.agent("other"), func(p *gatehouse.Proposal) {
		p.Target.EntityRef = "SKU-2"
		p.ArtifactDiff = &gatehouse.ArtifactDiff{Type: "text", Text: strings.Repeat("a line\n", 400)}
	})
	ana.get("/actions/"+long.ID).want(200).has("1 entry is not shown", "Too long to show at first.")
	ana.get("/actions/" + long.ID + "?full=1").want(200).has("a line").lacks("not shown")
}

// TestAFieldTwice posts forms that name a field twice, which makes their meaning ambiguous.
func TestAFieldTwice(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a := w.propose(w.agent("bot"), nil)
	ana := w.signIn("ana", gatehouse.RoleApprover)
	for _, extra := range [][]string{{"decision", "rejected"}, {"digest", "sha256:0"}, {"notes", "x", "notes", "y"}} {
		ana.post("/actions/"+a.ID+"/decide",
			decision(a, gatehouse.Approve, extra...)...).want(http.StatusBadRequest).has("more than once")
		ana.post("/inbox/bulk",
			append(extra, "decision", "approved", "digest", "", "item", a.ID+" "+string(a.Digest))...).want(
			http.StatusBadRequest)
		if got := w.action(a.ID); got.Status != gatehouse.StatusPending {
			t.Fatalf("%v: the action is %s", extra, got.Status)
		}
	}
	ana.post("/actions/"+a.ID+"/decide?decision=rejected&digest=x", decision(a, gatehouse.Approve)...).want(http.StatusOK)
	if got := w.action(a.ID); got.Status != gatehouse.StatusApproved {
		t.Errorf("the value in the address counted: the action is %s", got.Status)
	}
}

// TestStreamsOfOnePerson checks that one person cannot use up all event streams.
func TestStreamsOfOnePerson(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ana, ben := w.signIn("ana", gatehouse.RoleViewer), w.signIn("ben", gatehouse.RoleViewer)
	ctx, hangUp := context.WithCancel(t.Context())
	defer hangUp()
	open := func(b *browser) int {
		r := b.request(http.MethodGet, "/events/changes", nil).WithContext(ctx)
		res, err := b.client.Do(r)
		must(t, err)
		t.Cleanup(func() { _ = res.Body.Close() })
		return res.StatusCode
	}
	elsewhere := ana.again() // another session of the same person counts too
	for i := range console.PersonStreams {
		b := ana
		if i%2 == 1 {
			b = elsewhere
		}
		if got := open(b); got != http.StatusOK {
			t.Fatalf("status %d", got)
		}
	}
	if got := open(ana); got != http.StatusServiceUnavailable {
		t.Errorf("one stream more than a person has: status %d", got)
	}
	if got := open(ben); got != http.StatusOK {
		t.Errorf("another person's stream: status %d", got)
	}
	// Streams that end free their places.
	hangUp()
	ctx, hangUp = context.WithCancel(t.Context())
	defer hangUp()
	for end := time.Now().Add(time.Minute); open(ana) != http.StatusOK; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("streams that have ended still count")
		}
	}
}

// TestBodyThatNeverComes opens a POST and never sends its body.
func TestBodyThatNeverComes(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.console.SetBodyTimeout(50 * time.Millisecond)
	c, err := net.Dial("tcp", w.server.Listener.Addr().String())
	must(t, err)
	defer c.Close()
	fmt.Fprintf(c,
		"POST /preferences HTTP/1.1\r\nHost: %s\r\nContent-Type: application/x-www-form-urlencoded\r\nContent-Length: "+
			"100\r\n\r\ntheme=", w.server.Listener.Addr())
	_ = c.SetReadDeadline(time.Now().Add(time.Minute))
	if _, err := bufio.NewReader(c).ReadString('\n'); err != nil {
		t.Errorf("the server still waits: %v", err)
	}
}

// TestNoProposalMakesAHugePage proposes payloads that grow when rendered. Each page is built in
// memory, for every reader, so its size is bounded.
func TestNoProposalMakesAHugePage(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	bot := w.agent("bot")
	ana := w.signIn("ana", gatehouse.RoleApprover)
	odd := gatehouse.StringJSON(strings.Repeat("\u202e\u200ba", 40_000))
	for name, tc := range map[string]struct {
		change  func(*gatehouse.Proposal)
		refused bool // even the full page cannot show everything
	}{
		"diff": {func(p *gatehouse.Proposal) {
			p.ArtifactDiff = &gatehouse.ArtifactDiff{Type: "text", Text: strings.Repeat("\n", 400_000)}
		}, true},
		"text": {func(p *gatehouse.Proposal) {
			p.ProposedChange = gatehouse.JSON(`{"note":"` + strings.Repeat(`\n`, 400_000) + `"}`)
		}, true},
		"value": {func(p *gatehouse.Proposal) {
			p.ProposedChange = gatehouse.ObjectJSON(gatehouse.Member{Name: "note", Value: odd})
		}, false},
		"metadata": {func(p *gatehouse.Proposal) {
			p.Metadata = gatehouse.ObjectJSON(gatehouse.Member{Name: "note", Value: odd})
		}, false},
	} {
		a := w.propose(bot, tc.change)
		path := "/actions/" + a.ID
		first, whole := ana.get(path).want(200), ana.get(path+"?full=1").want(200)
		if n := len(first.body); n > 1<<20 {
			t.Errorf("%s: the page has %d bytes", name, n)
		}
		if n := len(whole.body); n > 20<<20 {
			t.Errorf("%s: the whole page has %d bytes", name, n)
		}
		if tc.refused {
			whole.has(testid("hidden-lock"), testid("reject")).lacks(testid("approve"), `name="shown"`)
		} else {
			whole.has(testid("approve"))
		}
	}
}

// TestHostileTextInTheButton puts invisible characters into every text that the confirmation
// repeats: the button, the word to retype, and the refusals.
func TestHostileTextInTheButton(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	bot := w.agent("bot")
	ana := w.signIn("ana", gatehouse.RoleApprover)
	const odd = "\u202e\u200b\u2066\u0007"
	for name, change := range map[string]func(*gatehouse.Proposal){
		"L3": func(p *gatehouse.Proposal) { p.Target.EntityRef = "SKU" + odd },
		"L4": func(p *gatehouse.Proposal) {
			p.ActionType, p.Operation, p.CurrentState, p.Target = "create_item", "insert", "",
				gatehouse.Target{EntityType: "item", EntityRef: "SKU" + odd}
		},
		"diff": func(p *gatehouse.Proposal) {
			p.ArtifactDiff = &gatehouse.ArtifactDiff{Type: "text" + odd, Text: "x" + odd, Summary: odd}
		},
		"currency": func(p *gatehouse.Proposal) { p.Magnitude = &gatehouse.Magnitude{Amount: "2.50", Currency: "US" + odd} },
		"state": func(p *gatehouse.Proposal) {
			p.CurrentState = gatehouse.JSON(`{"currency":"US\u202e\u200b","price":"10.00"}`)
		},
	} {
		a := w.propose(bot, change)
		path := "/actions/" + a.ID
		for _, p := range []*page{
			ana.get(path).want(200), ana.get("/inbox?tab=team"), ana.get("/inbox/bulk?pick=" + a.ID).want(200),
			ana.post(path+"/decide", decision(a, gatehouse.Approve, "confirm", "other", "digest", "sha256:other")...),
			ana.post(path+"/decide", decision(a, gatehouse.Reject)...),
			ana.post("/inbox/bulk", "decision", "approved", "item", a.ID+" "+string(a.Digest)),
		} {
			if i := strings.IndexAny(p.body, odd); i >= 0 {
				t.Errorf("%s: %s shows %q as it is", name, p.url, p.body[max(0, i-80):min(len(p.body), i+20)])
			}
		}
	}
}

// TestNoPolicyMakesAHugePage sends a policy of empty comments: each line takes many bytes in the
// comparison.
func TestNoPolicyMakesAHugePage(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	root := w.signIn("root", gatehouse.RoleAdmin)
	p := root.post("/policies/check", "source", strings.Repeat("#\n", 150_000), "base",
		"1").want(200).has("longer than 20000 lines")
	if len(p.body) > 2<<20 {
		t.Errorf("the page has %d bytes", len(p.body))
	}
}

// TestLargeChangesAreNotParsedForALine: pages that show each action in one line do not parse a large
// change for it.
func TestLargeChangesAreNotParsedForALine(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ana := w.signIn("ana", gatehouse.RoleApprover)
	a := w.propose(w.agent("bot"), func(p *gatehouse.Proposal) {
		p.ProposedChange = gatehouse.JSON(`{"note":"` + strings.Repeat("x", 70_000) + `"}`)
	})
	ana.get("/inbox/bulk?pick="+a.ID).want(200).has(testid("bulk-excluded"), "Large change of",
		"too long").lacks(testid("bulk-approve"))
	many := w.propose(w.agent("robot"), func(p *gatehouse.Proposal) {
		p.Operation, p.CurrentState = "bulk_update", ""
		p.Target = gatehouse.Target{EntityType: "item", EntityRefs: []string{"SKU-1", "SKU-2"}}
		p.ProposedChange = gatehouse.JSON(`{"note":"` + strings.Repeat("x", 70_000) + `"}`)
	})
	ana.get("/inbox/bulk?pick=" + many.ID).want(200).has("Large change of 2 items")
	if _, err := w.gate.Decide(w.as(ana.creds), a.ID,
		gatehouse.Decision{Decision: gatehouse.Approve, Digest: a.Digest}); err != nil {
		t.Fatal(err)
	}
	ana.get("/dispatch?tab=queue").want(200).has("Large change of")
}
