package console

import (
	"cmp"
	"net/http"
	"strings"

	"github.com/gatehouse-dev/gatehouse"
)

// What can be done to several runs at once.
const (
	bulkCancel = "cancel"
	bulkRetry  = "retry"
)

// bulkRuns is a selection of runs, before or after an act on all of them.
type bulkRuns struct {
	back string
	// cancel are the runs that can be canceled, retry those that can be retried, rest the others.
	cancel, retry, rest []*gatehouse.Run
	// done is bulkCancel or bulkRetry, "" before; results has one entry per run, in order.
	done    string
	results []runResult
}

// runResult is the result for one run.
type runResult struct {
	id string
	// r is the canceled run, or the run that retries it; nil when it was refused.
	r      *gatehouse.Run
	failed *gatehouse.Error
}

// refused counts the runs that were not changed.
func (b *bulkRuns) refused() (n int) {
	for _, x := range b.results {
		if x.failed != nil {
			n++
		}
	}
	return n
}

// bulkRunsPage shows the possible acts on the selected runs.
func (c *Console) bulkRunsPage(v *view) error {
	ids := v.r.URL.Query()["pick"]
	if len(ids) > gatehouse.MaxLimit {
		return tooManyRuns()
	}
	b := &bulkRuns{back: localPath(cmp.Or(v.query("return"), "/runs"))}
	for _, id := range ids {
		r, err := c.cfg.Runs.FindRun(v.ctx, id)
		switch {
		case gatehouse.CodeOf(err) == gatehouse.CodeNotFound:
			continue
		case err != nil:
			return err
		case canCancel(v, r):
			b.cancel = append(b.cancel, r)
		case canRetry(v, r):
			b.retry = append(b.retry, r)
		default:
			b.rest = append(b.rest, r)
		}
	}
	return v.render(http.StatusOK, "Selected runs", "/runs", bulkRunsView(v, b))
}

// doBulkRuns cancels or retries each of the runs. A refusal of one does not stop the others.
func (c *Console) doBulkRuns(v *view) error {
	if err := v.parse(); err != nil {
		return err
	}
	ids, reason := v.r.PostForm["pick"], strings.TrimSpace(v.form("reason"))
	b := &bulkRuns{back: localPath(cmp.Or(v.form("return"), "/runs")), done: v.form("do")}
	switch {
	case len(ids) > gatehouse.MaxLimit:
		return tooManyRuns()
	case len(ids) == 0:
		return gatehouse.E(gatehouse.CodeInvalid, "select at least one run")
	case b.done != bulkCancel && b.done != bulkRetry:
		return gatehouse.E(gatehouse.CodeInvalid, "runs can be canceled or retried")
	}
	for _, id := range ids {
		var r *gatehouse.Run
		var err error
		if b.done == bulkCancel {
			r, err = c.cfg.Runs.CancelRun(v.ctx, id, reason)
		} else {
			r, err = c.cfg.Runs.RetryRun(v.ctx, id)
		}
		x := runResult{id: id, r: r}
		if err != nil {
			x.r, x.failed = nil, asError(err)
			if x.failed.Code == gatehouse.CodeInternal {
				c.log.ErrorContext(v.ctx, "a run was not canceled or retried", "do", b.done, "request_id", v.requestID,
					"run", id, "error", err)
			}
		}
		b.results = append(b.results, x)
	}
	return v.render(http.StatusOK, "Selected runs", "/runs", bulkRunsView(v, b))
}

func tooManyRuns() error {
	return gatehouse.E(gatehouse.CodeInvalid, "at most %d runs at once", gatehouse.MaxLimit)
}

// resultTitle summarizes the results.
func (b *bulkRuns) resultTitle() string {
	did, failed := "canceled", b.refused()
	if b.done == bulkRetry {
		did = "retried"
	}
	switch done := len(b.results) - failed; {
	case done == 0:
		return "No run was " + did
	case failed == 0:
		return plural(done, "run", "runs") + " " + did
	default:
		return plural(done, "run", "runs") + " " + did + ", " + plural(failed, "run", "runs") + " not"
	}
}

func bulkTone(b *bulkRuns) string {
	if b.refused() > 0 {
		return "warn"
	}
	return "good"
}

// resultCode is "done", or the code of the refusal.
func resultCode(x runResult) string {
	if x.failed != nil {
		return string(x.failed.Code)
	}
	return "done"
}
