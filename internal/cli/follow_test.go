package cli

import (
	"context"
	"encoding/json"
	"errors"
	"net/url"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/term"
)

// scriptedService returns the test's answers in turn.
type scriptedService struct {
	service
	t       *testing.T
	actions []answer
	entries func(from int64, limit int) ([]*gatehouse.Entry, error)
	polls   []time.Duration

	principals func() (gatehouse.Page[*gatehouse.Principal], error)
}

func (s *scriptedService) ListPrincipals(context.Context, string, int) (gatehouse.Page[*gatehouse.Principal], error) {
	return s.principals()
}

type answer struct {
	status gatehouse.Status
	err    error
	after  time.Duration
}

func (s *scriptedService) WaitAsked(
	ctx context.Context, id string, wait time.Duration, _ gatehouse.Until, _ int,
) (*gatehouse.Action, error) {
	s.polls = append(s.polls, wait)
	next := answer{status: gatehouse.StatusPending, after: wait}
	if len(s.actions) > 0 {
		next, s.actions = s.actions[0], s.actions[1:]
	}
	select {
	case <-time.After(next.after):
	case <-ctx.Done():
		return nil, &url.Error{Op: "Get", URL: "x", Err: ctx.Err()}
	}
	if next.err != nil {
		return nil, next.err
	}
	return &gatehouse.Action{ID: id, Status: next.status}, nil
}

func (s *scriptedService) ListEntries(_ context.Context, from int64, limit int) ([]*gatehouse.Entry, error) {
	return s.entries(from, limit)
}

func TestWaitOutlivesTheServer(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		busy := gatehouse.E(gatehouse.CodeBusy, "busy")
		busy.RetryAfter = 7
		s := &scriptedService{t: t, actions: []answer{
			{status: gatehouse.StatusPending, after: pollFor},
			{err: &url.Error{Op: "Get", URL: "x", Err: syscall.ECONNREFUSED}},
			{err: busy},
			{status: gatehouse.StatusPushing, after: time.Second},
			{status: gatehouse.StatusApplied, after: time.Second},
		}}
		g, out, _ := testGlobals(t)
		start := time.Now()
		err := g.wait(s, "act_1", waiting{until: gatehouse.UntilFinished, timeout: time.Hour})
		if code := exitCode(err); code != term.ExitDone || !strings.HasPrefix(out.String(), "act_1\tapplied\t") {
			t.Errorf("exit code %d, %q", code, out)
		}
		if took := time.Since(start); took != pollFor+1*time.Second+7*time.Second+2*time.Second {
			t.Errorf("took %s", took)
		}
	})
}

func TestWaitEnds(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name    string
		actions []answer
		timeout time.Duration
		cancel  time.Duration
		code    int
		took    time.Duration
	}{
		{name: "pending when the time is over", timeout: time.Minute, code: term.ExitPending, took: time.Minute},
		{name: "no time at all", timeout: 0, code: term.ExitPending, took: 0},
		{name: "unreachable to the end", timeout: 3 * time.Second, code: term.ExitError, took: 3 * time.Second,
			actions: []answer{
				{err: &url.Error{Op: "Get", URL: "x", Err: syscall.ECONNREFUSED}},
				{err: &url.Error{Op: "Get", URL: "x", Err: syscall.ECONNREFUSED}},
				{err: &url.Error{Op: "Get", URL: "x", Err: syscall.ECONNREFUSED}},
				{err: &url.Error{Op: "Get", URL: "x", Err: syscall.ECONNREFUSED}},
			}},
		{name: "unknown action", timeout: time.Minute, code: term.ExitError, took: 0,
			actions: []answer{{err: gatehouse.E(gatehouse.CodeNotFound, "x")}}},
		{name: "not allowed", timeout: time.Minute, code: term.ExitNotAllowed, took: 0,
			actions: []answer{{err: gatehouse.E(gatehouse.CodeUnauthenticated, "x")}}},
		{name: "an answer that cannot be read", timeout: time.Minute, code: term.ExitError, took: 0,
			actions: []answer{{err: errors.New("not JSON")}}},
		{name: "interrupted", timeout: time.Hour, cancel: 10 * time.Second, code: term.ExitCanceled,
			took: 10 * time.Second},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				g, _, _ := testGlobals(t)
				if c.cancel > 0 {
					interrupted, interrupt := context.WithCancel(g.Ctx)
					time.AfterFunc(c.cancel, interrupt)
					g.Ctx = interrupted
				}
				start := time.Now()
				s := &scriptedService{t: t, actions: c.actions}
				err := g.wait(s, "act_1", waiting{until: gatehouse.UntilDecided, timeout: c.timeout})
				if code := exitCode(err); code != c.code {
					t.Errorf("exit code %d, want %d: %v", code, c.code, err)
				}
				if took := time.Since(start); took != c.took {
					t.Errorf("took %s, want %s", took, c.took)
				}
				for _, p := range s.polls {
					if p > pollFor {
						t.Errorf("a poll of %s", p)
					}
				}
			})
		})
	}
}

func entry(t *testing.T, index int64) *gatehouse.Entry {
	t.Helper()
	body, err := json.Marshal(
		gatehouse.Leaf{ID: "evt", Tenant: "default", Type: "hitl.proposed", Subject: "act_1", Actor: "prn_1", To: "pending"})
	must(t, err)
	return &gatehouse.Entry{Index: index, Body: gatehouse.JSON(body)}
}

func TestFollowSkipsNothing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g, out, _ := testGlobals(t)
		ctx, interrupt := context.WithCancel(g.Ctx)
		defer interrupt()
		g.Ctx = ctx
		size, calls := int64(3), 0
		s := &scriptedService{t: t}
		// Names that cannot be read do not end the log.
		s.principals = func() (gatehouse.Page[*gatehouse.Principal], error) {
			return gatehouse.Page[*gatehouse.Principal]{}, gatehouse.E(gatehouse.CodeBusy, "busy")
		}
		s.entries = func(from int64, limit int) ([]*gatehouse.Entry, error) {
			switch calls++; calls {
			case 2:
				return nil, &url.Error{Op: "Get", URL: "x", Err: syscall.ECONNREFUSED}
			case 4:
				size = 5
			case 7:
				interrupt()
			}
			var out []*gatehouse.Entry
			for ; from < size && len(out) < limit; from++ {
				out = append(out, entry(t, from))
			}
			return out, nil
		}
		c := &auditTailCmd{All: true, Follow: true}
		must(t, c.tail(g, s, 0))
		var got []string
		for line := range strings.Lines(out.String()) {
			index, _, _ := strings.Cut(line, "\t")
			got = append(got, index)
		}
		if strings.Join(got, " ") != "0 1 2 3 4" {
			t.Errorf("got entries %v", got)
		}
	})
}

// TestVerifyReadsNoEntryTwice: if a server returns other entries than requested, the command fails
// instead of looping.
func TestVerifyReadsNoEntryTwice(t *testing.T) {
	t.Parallel()
	g, _, _ := testGlobals(t)
	s := &scriptedService{t: t, entries: func(int64, int) ([]*gatehouse.Entry, error) {
		return []*gatehouse.Entry{entry(t, 0), entry(t, 1)}, nil
	}}
	n := 0
	for _, err := range g.entriesUpTo(s, 10) {
		if n++; err != nil {
			if n != 3 || !strings.Contains(err.Error(), "to a request for entries from 2") {
				t.Errorf("after %d entries: %v", n, err)
			}
			return
		}
		if n > 10 {
			t.Fatal("no end")
		}
	}
	t.Error("the log ended without an error")
}

// TestVerifyReadsExactEntries: a line that jq or Python would read as another entry is refused.
func TestVerifyReadsExactEntries(t *testing.T) {
	t.Parallel()
	e := entry(t, 0)
	line, err := json.Marshal(e)
	must(t, err)
	text := string(line)
	forged := `"leaf":{"actor":"prn_forged"}`
	for _, in := range []string{
		strings.Replace(text, `"leaf":`, forged+`,"Leaf":`, 1), strings.Replace(text, `"leaf":`, forged+`,"leaf":`, 1),
		strings.Replace(text, `"leaf":`, `"LEAF":`, 1), strings.Replace(text, `"leaf":`, `"note":1,"leaf":`, 1),
	} {
		n := 0
		for got, err := range entriesIn(strings.NewReader(in), "log.jsonl", 10) {
			if n++; err == nil || !strings.Contains(err.Error(), "line 1 of log.jsonl is not an entry") {
				t.Errorf("%s is read as %+v, error %v", in, got, err)
			}
		}
		if n != 1 {
			t.Errorf("%s has %d entries and errors", in, n)
		}
	}
	n := 0
	for got, err := range entriesIn(strings.NewReader(text), "log.jsonl", 10) {
		if n++; err != nil || !strings.Contains(string(got.Body), `"actor":"prn_1"`) {
			t.Errorf("%+v, %v; want %s", got, err, text)
		}
	}
	if n != 1 {
		t.Errorf("%d entries, want 1", n)
	}
}

func TestEntryLine(t *testing.T) {
	t.Parallel()
	g, _, _ := testGlobals(t)
	at := time.Date(2026, 11, 20, 11, 0, 0, 0, time.UTC)
	moved := &gatehouse.Leaf{At: at, Type: "hitl.approved", Subject: "act_1", Actor: "prn_\x1b", From: "pending",
		To: "approved"}
	made := &gatehouse.Leaf{At: at, Type: "key.created", Subject: "key_1", Actor: "prn_1"}
	if got, want := string(g.entryLine(7, moved)),
		"7\t2026-11-20T11:00:00Z\thitl.approved\tact_1\tprn_<U+001B>\tpending\tapproved\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	g.TTY = true
	if got, want := string(g.entryLine(7, moved)),
		"     7  2026-11-20T11:00:00Z  hitl.approved      act_1  pending → approved  by prn_<U+001B>\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got, want := string(g.entryLine(8, made)),
		"     8  2026-11-20T11:00:00Z  key.created        key_1  by prn_1\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
