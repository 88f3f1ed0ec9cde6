package console_test

import (
	"bufio"
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/gatehouse-dev/gatehouse"
)

// stream opens the stream of changes and returns its lines.
func (b *browser) stream(ctx context.Context, lastID string) (stream <-chan string, contentType string) {
	b.w.t.Helper()
	r := b.request(http.MethodGet, "/events/changes", nil).WithContext(ctx)
	if lastID != "" {
		r.Header.Set("Last-Event-ID", lastID)
	}
	client := *b.client
	client.Timeout = 0
	res, err := client.Do(r) //nolint:bodyclose // by the goroutine below
	if err != nil {
		b.w.t.Fatal(err)
	}
	lines := make(chan string, 100)
	go func() {
		defer close(lines)
		defer res.Body.Close()
		for scan := bufio.NewScanner(res.Body); scan.Scan(); {
			lines <- scan.Text()
		}
	}()
	return lines, res.Header.Get("Content-Type")
}

// next returns the next line that is not empty, "" at the end of the stream.
func next(t *testing.T, lines <-chan string) string {
	t.Helper()
	late := time.After(10 * time.Second)
	for {
		select {
		case line, ok := <-lines:
			if !ok || line != "" {
				return line
			}
		case <-late:
			t.Fatal("the stream says nothing")
		}
	}
}

func TestChangesSayOnlyThatSomethingChanged(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ana := w.signIn("ana", gatehouse.RoleApprover)
	bot := w.agent("bot")
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	lines, contentType := ana.stream(ctx, "")
	if contentType != "text/event-stream" {
		t.Fatalf("the stream is %s", contentType)
	}
	if line := next(t, lines); !strings.HasPrefix(line, "retry: ") {
		t.Fatalf("it begins with %q", line)
	}
	w.propose(bot, nil)
	for _, want := range []string{"id: 1", "event: changed", "data:"} {
		if line := next(t, lines); line != want {
			t.Errorf("the stream says %q, want %q", line, want)
		}
	}

	// One that comes back is told at once.
	again, _ := ana.stream(ctx, "41")
	next(t, again)
	if line := next(t, again); line != "id: 42" {
		t.Errorf("a stream that resumes says %q", line)
	}

	// Another's revocation ends it with the next change.
	sessions, err := w.gate.ListSessions(w.admin, gatehouse.SessionFilter{Principal: "ana"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.gate.RevokeSession(w.admin, sessions.Items[0].ID); err != nil {
		t.Fatal(err)
	}
	w.propose(bot, nil)
	for line := next(t, lines); line != ""; line = next(t, lines) {
		if strings.HasPrefix(line, "id: ") && line > "id: 5" {
			t.Fatal("the stream goes on after its session ended")
		}
	}
}

func TestChangesNeedASession(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	b := w.stranger()
	if p := b.get("/events/changes"); p.url.Path != "/signin" {
		t.Errorf("a stranger got %s", p.url)
	}
}
