package client_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/client"
)

func events(frames ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprint(w, "retry: 2000\n\n")
		for _, f := range frames {
			fmt.Fprint(w, f)
		}
	}
}

func event(n int) string {
	return fmt.Sprintf(
		"id: %d\nevent: hitl.approved\ndata: {\"id\":\"evt_%d\",\"type\":\"hitl.approved\",\"actionid\":\"act_1\"}\n\n", n, n)
}

// TestFollow: the client continues after the last event when the connection breaks, even in the
// middle of an event, and stops when the server refuses.
func TestFollow(t *testing.T) {
	t.Parallel()
	s := &script{answers: []http.HandlerFunc{
		events(event(3), "id: 5\n: keep-alive\n\n"),
		events(event(6), event(7)[:20]), // cut off
		problem(gatehouse.CodeBusy, ""),
		events(event(7)),
		problem(gatehouse.CodeUnauthenticated, ""),
	}}
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	c, err := client.New(server.URL, "gth_x", client.WithRetries(1, time.Millisecond))
	if err != nil {
		t.Fatal(err)
	}
	var got []int64
	after := int64(2)
	err = c.Follow(t.Context(), gatehouse.EventFilter{After: &after, Types: []string{"hitl.*"}},
		func(e gatehouse.Event) error {
			if e.Type != "hitl.approved" || e.ActionID != "act_1" || e.ID != fmt.Sprintf("evt_%d", e.Index) {
				t.Errorf("an event %+v", e)
			}
			got = append(got, e.Index)
			return nil
		})
	if gatehouse.CodeOf(err) != gatehouse.CodeUnauthenticated || !slices.Equal(got, []int64{3, 6, 7}) {
		t.Errorf("got %v, %v", got, err)
	}
	var last []string
	for _, r := range s.seen {
		last = append(last, r.Header.Get("Last-Event-ID"))
	}
	if want := []string{"2", "5", "6", "6", "7"}; !slices.Equal(last, want) {
		t.Errorf("began after %v, want %v", last, want)
	}

	mine := errors.New("enough")
	s = &script{answers: []http.HandlerFunc{events(event(1), event(2))}}
	server = httptest.NewServer(s)
	t.Cleanup(server.Close)
	if c, err = client.New(server.URL, "gth_x"); err != nil {
		t.Fatal(err)
	}
	if err := c.Follow(t.Context(), gatehouse.EventFilter{}, func(gatehouse.Event) error { return mine }); !errors.Is(err,
		mine) {
		t.Errorf("the function's error is %v", err)
	}

	large := "id: 1\ndata: " + strings.Repeat("x", 9<<20) + "\n\n"
	_, c = start(t, events(large), problem(gatehouse.CodeUnauthenticated, ""))
	err = c.Follow(t.Context(), gatehouse.EventFilter{}, func(gatehouse.Event) error { return nil })
	if err == nil || !strings.Contains(err.Error(), "8 MiB") {
		t.Errorf("a large event: %v", err)
	}
}

// TestFollowEndsAtAWrongAddress: an answer that is not from Gatehouse ends the call, as it ends every other call.
// A gateway that cannot reach the server does not.
func TestFollowEndsAtAWrongAddress(t *testing.T) {
	t.Parallel()
	for name, answer := range map[string]http.HandlerFunc{
		"a redirect": func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/login", http.StatusFound) },
		"an error page": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/html")
			w.WriteHeader(http.StatusBadRequest)
		},
		"a page": func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "<html>") },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, c := start(t, bare(http.StatusBadGateway), drop, answer, problem(gatehouse.CodeUnauthenticated, ""))
			err := c.Follow(t.Context(), gatehouse.EventFilter{}, func(gatehouse.Event) error { return nil })
			if gatehouse.CodeOf(err) != gatehouse.CodeInternal || s.count() != 3 {
				t.Errorf("%v after %d requests", err, s.count())
			}
		})
	}
}

// TestWaitDecision: the call survives time-outs and outages, and ends with its context.
func TestWaitDecision(t *testing.T) {
	t.Parallel()
	s := &script{answers: []http.HandlerFunc{
		ok(`{"id":"act_1","status":"pending"}`),
		problem(gatehouse.CodeBusy, ""), problem(gatehouse.CodeBusy, ""), problem(gatehouse.CodeBusy, ""),
		func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
		ok(`{"id":"act_1","status":"rejected"}`),
	}}
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	c, err := client.New(server.URL, "gth_x", client.WithRetries(1, time.Millisecond))
	if err != nil {
		t.Fatal(err)
	}
	a, err := c.WaitDecision(t.Context(), "act_1")
	if err != nil || a.Status != gatehouse.StatusRejected {
		t.Fatalf("%+v, %v", a, err)
	}
	s.answers = append(s.answers, problem(gatehouse.CodeNotFound, ""))
	if _, err := c.WaitDecision(t.Context(), "act_2"); gatehouse.CodeOf(err) != gatehouse.CodeNotFound {
		t.Errorf("an unknown action: %v", err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
	defer cancel()
	s.answers = append(s.answers[:0:0], problem(gatehouse.CodeBusy, "5"))
	if _, err := c.WaitDecision(ctx, "act_1"); !errors.Is(err, context.DeadlineExceeded) ||
		gatehouse.CodeOf(err) != gatehouse.CodeBusy {
		t.Errorf("out of time: %v", err)
	}
}
