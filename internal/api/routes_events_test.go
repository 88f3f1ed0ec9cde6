package api

import (
	"bufio"
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gatehouse-dev/gatehouse"
)

// eventLog has ten entries; the caller may read the even ones.
type eventLog struct {
	mu    sync.Mutex
	asked []gatehouse.EventFilter
}

func (l *eventLog) ReadEvents(ctx context.Context, f gatehouse.EventFilter) (*gatehouse.EventPage, error) {
	l.mu.Lock()
	l.asked = append(l.asked, f)
	l.mu.Unlock()
	if f.ActionID == "act_broken" {
		return nil, gatehouse.E(gatehouse.CodeBusy, "the store does not answer")
	}
	page := &gatehouse.EventPage{Last: 9}
	if f.After == nil {
		return page, nil
	}
	for i := *f.After + 1; i < 10; i++ {
		if i%2 == 0 {
			page.Events = append(page.Events,
				gatehouse.Event{Index: i, Type: "hitl.approved", Body: []byte(`{"id":"evt_` + string(rune('0'+i)) + `"}`)})
		}
	}
	if len(page.Events) == 0 && f.Wait > 0 {
		select {
		case <-time.After(f.Wait):
		case <-ctx.Done():
		}
	}
	return page, nil
}

// revocable is an authenticator whose keys can be revoked.
type revocable struct {
	*fake
	mu    sync.Mutex
	ended bool
}

func (r *revocable) Authenticate(ctx context.Context, key string) (*gatehouse.Principal, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ended {
		return nil, errors.New("revoked")
	}
	return r.fake.Authenticate(ctx, key)
}

func stream(t *testing.T, base, path, last string) (head, *bufio.Scanner) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, base+path, nil)
	must(t, err)
	req.Header.Set("Authorization", "Bearer gth_ana")
	if last != "" {
		req.Header.Set("Last-Event-ID", last)
	}
	resp, err := http.DefaultClient.Do(req)
	must(t, err)
	t.Cleanup(func() { resp.Body.Close() })
	return head{resp.StatusCode, resp.Header.Get("Content-Type")}, bufio.NewScanner(resp.Body)
}

// head is the beginning of a response.
type head struct {
	status int
	kind   string
}

// frames reads n frames of a stream.
func frames(t *testing.T, lines *bufio.Scanner, n int) (list []string) {
	t.Helper()
	frame := ""
	for len(list) < n && lines.Scan() {
		if lines.Text() != "" {
			frame += lines.Text() + "|"
			continue
		}
		list, frame = append(list, frame), ""
	}
	return list
}

func TestEventStreamNamesTheWrongHeader(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(newServer(t, newFake(), func(c *Config) { c.Events = &eventLog{} }))
	t.Cleanup(server.Close)
	_, lines := stream(t, server.URL, "/api/v1/events", "foo")
	if !lines.Scan() || !strings.Contains(lines.Text(), `"pointer":"/header/Last-Event-ID"`) {
		t.Errorf("%s", lines.Text())
	}
}

// TestEventStream: each event's id is its index, a stream starts after the last
// event that was read, sends keep-alives, and ends when its key is revoked.
func TestEventStream(t *testing.T) {
	t.Parallel()
	log, auth := &eventLog{}, &revocable{fake: newFake()}
	s := newServer(t, auth.fake, func(c *Config) { c.Events, c.Auth, c.EventBeat = log, auth, 20*time.Millisecond })
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	const path = Prefix + "/events"

	answer, lines := stream(t, server.URL, path+"?type=hitl.approved,%20push.*&action_id=act_1", "5")
	if answer != (head{200, "text/event-stream"}) {
		t.Fatal(answer)
	}
	want := []string{
		"retry: 2000|", `id: 6|event: hitl.approved|data: {"id":"evt_6"}|id: 8|event: hitl.approved|data: {"id":"evt_8"}|`,
		"id: 9|: keep-alive|",
	}
	got := frames(t, lines, 4)
	joined := []string{got[0], got[1] + got[2], got[3]}
	for i := range want {
		if joined[i] != want[i] {
			t.Errorf("frame %d is %q, want %q", i, joined[i], want[i])
		}
	}
	log.mu.Lock()
	if f := log.asked[0]; *f.After != 5 || f.ActionID != "act_1" || strings.Join(f.Types, " ") != "hitl.approved push.*" {
		t.Errorf("asked for %+v", f)
	}
	log.mu.Unlock()
	if _, lines := stream(t, server.URL, path+"?after=7", ""); frames(t, lines,
		2)[1] != `id: 8|event: hitl.approved|data: {"id":"evt_8"}|` {
		t.Error("the stream after index 7 does not begin with event 8")
	}
	if _, lines := stream(t, server.URL, path, ""); frames(t, lines, 2)[1] != "id: 9|: keep-alive|" {
		t.Error("a stream from now on sends an earlier event")
	}
	for bad, last := range map[string]string{path: "x", path + "?after=-2": "", path + "?kind=x": ""} {
		if answer, _ := stream(t, server.URL, bad, last); answer.status < 400 || answer.status > 499 {
			t.Errorf("%s, %q: %d", bad, last, answer.status)
		}
	}
	if answer, _ := stream(t, server.URL, path+"?action_id=act_broken", ""); answer.status != 503 {
		t.Errorf("an event log that cannot be read: %d", answer.status)
	}
	auth.mu.Lock()
	auth.ended = true
	auth.mu.Unlock()
	ended := make(chan struct{})
	go func() { defer close(ended); frames(t, lines, 1<<20) }()
	select {
	case <-ended:
	case <-time.After(10 * time.Second):
		t.Error("a stream continues after its key was revoked")
	}
}

// roleLog reports the roles with which each read of a stream is made.
type roleLog struct{ read chan []gatehouse.Role }

func (l roleLog) ReadEvents(ctx context.Context, _ gatehouse.EventFilter) (*gatehouse.EventPage, error) {
	c, err := gatehouse.CallerFrom(ctx)
	if err != nil {
		return nil, err
	}
	select {
	case l.read <- c.Principal.Roles:
	case <-ctx.Done():
	}
	return &gatehouse.EventPage{Last: 9}, nil
}

// demotable is an authenticator whose principals can lose their roles.
type demotable struct {
	*fake
	mu      sync.Mutex
	demoted bool
}

func (d *demotable) Authenticate(ctx context.Context, key string) (*gatehouse.Principal, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	p, err := d.fake.Authenticate(ctx, key)
	if err != nil || !d.demoted {
		return p, err
	}
	viewer := *p
	viewer.Roles = []gatehouse.Role{gatehouse.RoleViewer}
	return &viewer, nil
}

// TestEventStreamReadsWithTheRolesOfToday: a role that was taken while the stream was open does not count any more.
func TestEventStreamReadsWithTheRolesOfToday(t *testing.T) {
	t.Parallel()
	log, auth := roleLog{make(chan []gatehouse.Role)}, &demotable{fake: newFake()}
	server := httptest.NewServer(newServer(t, auth.fake, func(c *Config) {
		c.Events, c.Auth, c.EventBeat = log, auth, time.Nanosecond
	}))
	t.Cleanup(server.Close)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, server.URL+Prefix+"/events", nil)
	must(t, err)
	req.Header.Set("Authorization", "Bearer gth_ana")
	answered := make(chan error, 1)
	go func() {
		resp, err := http.DefaultClient.Do(req)
		if err == nil {
			t.Cleanup(func() { _ = resp.Body.Close() })
		}
		answered <- err
	}()
	if first := <-log.read; !slices.Contains(first, gatehouse.RoleApprover) {
		t.Fatalf("the first read is made as %v", first)
	}
	must(t, <-answered)
	auth.mu.Lock()
	auth.demoted = true
	auth.mu.Unlock()
	<-log.read // the server may have authenticated before
	if later := <-log.read; !slices.Equal(later, []gatehouse.Role{gatehouse.RoleViewer}) {
		t.Errorf("after the demotion, a read is made as %v", later)
	}
}
