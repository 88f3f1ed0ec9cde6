package cli

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/client"
)

// TestFollowEvents: the Go client receives the event of an agent's proposal from the real server, and an
// open stream does not keep the server from stopping.
func TestFollowEvents(t *testing.T) {
	t.Parallel()
	s := startDev(t, t.TempDir())
	c, err := client.New(strings.TrimSuffix(s.api, "/api/v1"), s.key)
	must(t, err)
	ctx, stop := context.WithTimeout(t.Context(), time.Minute)
	defer stop()
	heard := make(chan gatehouse.Event, 10)
	followed := make(chan error, 1)
	begin := int64(-1)
	go func() {
		followed <- c.Follow(ctx, gatehouse.EventFilter{After: &begin},
			func(e gatehouse.Event) error { heard <- e; return nil })
	}()
	a, _, err := c.Propose(ctx, &gatehouse.Proposal{
		ActionType: "price_change", Connector: "shop", Operation: "update",
		Target:       gatehouse.Target{EntityType: "item", EntityRef: "SKU-1042", Version: "7"},
		CurrentState: `{"price":"10.00"}`, ProposedChange: `{"price":"12.50"}`,
	})
	must(t, err)
	select {
	case e := <-heard:
		if e.Type != "hitl.proposed" || e.ActionID != a.ID {
			t.Errorf("the first event is %s of %s", e.Type, e.ActionID)
		}
	case <-ctx.Done():
		t.Fatal("no event arrived")
	}
	must(t, s.cmd.Process.Signal(os.Interrupt))
	ended := make(chan error, 1)
	go func() { ended <- s.cmd.Wait() }()
	select {
	case err := <-ended:
		must(t, err)
	case <-time.After(20 * time.Second):
		t.Error("the server waits for the stream")
	}
	stop()
	if err := <-followed; !errors.Is(err, context.Canceled) {
		t.Errorf("following ended with %v", err)
	}
}
