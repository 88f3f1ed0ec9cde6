package gate

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/usecase"
)

var _ gatehouse.EventService = (*Gate)(nil)

// eventBatch is how many log entries one transaction reads.
const eventBatch = 200

// ReadEvents implements [gatehouse.EventService].
func (g *Gate) ReadEvents(ctx context.Context, f gatehouse.EventFilter) (*gatehouse.EventPage, error) {
	c, err := gatehouse.CallerFrom(ctx)
	if err != nil {
		return nil, err
	}
	var page *gatehouse.EventPage
	topics := []string{usecase.TopicLog(c.Principal.Tenant)}
	err = usecase.Poll(ctx, g.Hints, min(f.Wait, gatehouse.MaxWait), topics, func() (bool, error) {
		var looked int
		var err error
		page, looked, err = g.readEvents(ctx, f)
		if err != nil {
			return true, err
		}
		f.After = &page.Last
		return len(page.Events) > 0 || looked == eventBatch, nil
	})
	return page, err
}

// readEvents reads one batch. looked is the number of entries read.
func (g *Gate) readEvents(
	ctx context.Context,
	f gatehouse.EventFilter,
) (page *gatehouse.EventPage, looked int, err error) {
	err = g.View(ctx, "log", func(tx gatehouse.ReadTx, c *gatehouse.Caller) error {
		page, looked = &gatehouse.EventPage{}, 0
		tenant := c.Principal.Tenant
		if f.After == nil {
			size, err := tx.LogSize()
			page.Last = size - 1
			return err
		}
		page.Last = *f.After
		entries, err := tx.ListEntries(*f.After+1, eventBatch)
		if err != nil {
			return err
		}
		if looked = len(entries); looked == 0 {
			if err := withinLog(tx, *f.After); err != nil {
				return err
			}
		}
		may := make(map[string]bool)
		for _, e := range entries {
			page.Last = e.Index
			event, err := e.CloudEvent(tenant)
			if err != nil {
				return err
			}
			if !wanted(f, event) {
				continue
			}
			ok, err := g.mayReadEvent(tx, c, event, may)
			if err != nil {
				return err
			}
			if ok {
				page.Events = append(page.Events, *event)
			}
		}
		return nil
	})
	return page, looked, err
}

// withinLog refuses an index beyond the end of the log. After a restore from a backup, the log may end before the last
// event that a reader has read: the reader would wait, and then miss the new events that get the same indexes.
func withinLog(tx gatehouse.LogReader, index int64) error {
	size, err := tx.LogSize()
	if err != nil || index < size {
		return err
	}
	return gatehouse.Violations{{Pointer: "/query/after", Detail: fmt.Sprintf(
		"is beyond the end of the log, which has %d entries: was it restored from a backup?", size)}}.Err()
}

func wanted(f gatehouse.EventFilter, e *gatehouse.Event) bool {
	if f.ActionID != "" && e.ActionID != f.ActionID {
		return false
	}
	return len(f.Types) == 0 || slices.ContainsFunc(f.Types, func(t string) bool {
		prefix, wildcard := strings.CutSuffix(t, "*")
		return t == e.Type || wildcard && strings.HasPrefix(e.Type, prefix)
	})
}

// publicEvents lists the prefixes of the event types that callers other than auditors
// receive.
var publicEvents = []string{"hitl.", "push.", "action.", "run.", "step."}

// mayReadEvent reports whether the caller may read an event: its type, and the action or run that it is about.
// may caches the results for actions and runs, by id.
func (g *Gate) mayReadEvent(
	tx objectReader,
	c *gatehouse.Caller,
	e *gatehouse.Event,
	may map[string]bool,
) (bool, error) {
	public := func(begin string) bool { return strings.HasPrefix(e.Type, begin) }
	if !c.Principal.Has(gatehouse.RoleAuditor) && !slices.ContainsFunc(publicEvents, public) {
		return false, nil
	}
	if g.ReadsAs(c.Principal) == "" {
		return true, nil
	}
	about := e.ActionID
	if about == "" {
		about = e.Subject
	}
	ok, known := may[about]
	if known {
		return ok, nil
	}
	var err error
	if strings.HasPrefix(about, "run_") {
		err = g.CheckMayReadRunID(tx, c, about)
	} else {
		_, err = g.findAction(tx, c, about)
	}
	if err != nil && gatehouse.CodeOf(err) != gatehouse.CodeNotFound && !errors.Is(err, gatehouse.ErrNotFound) {
		return false, err
	}
	may[about] = err == nil
	return err == nil, nil
}
