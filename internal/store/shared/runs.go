package shared

import (
	"cmp"
	"errors"
	"fmt"
	"math/big"
	"slices"
	"strings"

	"github.com/gatehouse-dev/gatehouse"
)

// HasEnded reports whether an action has ended for the runs that wait for it. An unknown outcome is not an end.
func HasEnded(s gatehouse.Status) bool {
	switch s {
	case gatehouse.StatusApplied, gatehouse.StatusFailed, gatehouse.StatusRejected, gatehouse.StatusDenied,
		gatehouse.StatusExpired, gatehouse.StatusCanceled, gatehouse.StatusSuperseded, gatehouse.StatusReversed:
		return true
	}
	return false
}

// SortSteps sorts by index, then key. Items follow the step that they belong
// to; those with the same index are sorted by the numbers in their keys.
func SortSteps(steps []*gatehouse.Step) {
	of := make(map[string]*gatehouse.Step, len(steps))
	for _, s := range steps {
		of[s.ID] = s
	}
	top := func(s *gatehouse.Step) *gatehouse.Step {
		if p := of[s.Parent]; p != nil {
			return p
		}
		return s
	}
	slices.SortFunc(steps, func(a, b *gatehouse.Step) int {
		p, q := top(a), top(b)
		if p != q {
			return cmp.Or(cmp.Compare(p.Index, q.Index), cmp.Compare(p.Key, q.Key), cmp.Compare(p.ID, q.ID))
		}
		switch {
		case a == b:
			return 0
		case a == p:
			return -1
		case b == p:
			return 1
		}
		return cmp.Or(cmp.Compare(a.Index, b.Index), cmp.Compare(len(a.Key), len(b.Key)), cmp.Compare(a.Key, b.Key))
	})
}

// SortItems sorts the items of one step by the numbers in their keys.
func SortItems(items []*gatehouse.Step) {
	slices.SortFunc(items, func(a, b *gatehouse.Step) int {
		return cmp.Or(cmp.Compare(len(a.Key), len(b.Key)), cmp.Compare(a.Key, b.Key))
	})
}

// MayHaveItems reports whether a step may be waiting for items: it is waiting, and not for a child run, an
// event or a time.
func MayHaveItems(s *gatehouse.Step) bool {
	return s.Status == gatehouse.StepWaiting && s.Parent == "" && s.ChildRun == "" && s.Event == "" && s.DueAt == nil
}

// LeafKey returns the id under which a leaf is listed: the action's id, or the
// run's for a leaf that is about a run only.
func LeafKey(l *gatehouse.Leaf) string {
	if l.ActionID == "" && IsRun(l.Subject) {
		return l.Subject
	}
	return l.ActionID
}

// IsRun reports whether an id is that of a run.
func IsRun(id string) bool { return strings.HasPrefix(id, "run_") }

var million = big.NewInt(1_000_000)

// SplitCost splits a cost into millionths and the remainder in millionths of a
// millionth, rounded up. Sums of the two parts are exact for costs with at most
// twelve decimal places. A negative cost is refused.
func SplitCost(cost gatehouse.Decimal) (micros, picos int64, err error) {
	whole, err := cost.Micros()
	if err != nil {
		return 0, 0, gatehouse.E(gatehouse.CodeInvalid, "the cost: %s", err)
	}
	if whole < 0 {
		return 0, 0, gatehouse.E(gatehouse.CodeInvalid, "the cost is negative")
	}
	micros = whole
	if gatehouse.DecimalFromMicros(whole).Cmp(cost) > 0 {
		micros-- // undo the rounding up
	}
	rest := cost.Sub(gatehouse.DecimalFromMicros(micros))
	picos, err = gatehouse.Decimal(string(rest) + "e6").Micros()
	if err == nil && picos == 1_000_000 {
		return micros + 1, 0, nil
	}
	return micros, picos, err
}

// JoinCost returns the cost of two parts from SplitCost, or of sums of such
// parts.
func JoinCost(micros, picos int64) (gatehouse.Decimal, error) {
	if micros < 0 || picos < 0 {
		return "", errors.New("store: the stored sum of costs is negative")
	}
	sum := new(big.Int).Mul(big.NewInt(micros), million)
	sum.Add(sum, big.NewInt(picos))
	digits := fmt.Sprintf("%013d", sum)
	at := len(digits) - 12
	s := strings.TrimRight(digits[at:], "0")
	if s == "" {
		return gatehouse.Decimal(digits[:at]), nil
	}
	return gatehouse.Decimal(digits[:at] + "." + s), nil
}

// SortReady sorts claimed steps by the time at which they became ready; ties
// keep their order.
func SortReady(steps []*gatehouse.Step) {
	slices.SortStableFunc(steps, func(a, b *gatehouse.Step) int { return a.ReadyAt.Compare(*b.ReadyAt) })
}

// Passed reports whether a step looks like one that was made ready, leased and
// closed at once.
func Passed(s *gatehouse.Step) bool {
	return s.Status == gatehouse.StepSucceeded && s.Generation >= 1 && s.Attempts >= 1 && s.LeaseUntil == nil &&
		s.LeaseOwner == "" && s.ReadyAt != nil && s.StartedAt != nil && s.FinishedAt != nil
}

// CompareLanes orders lanes by tenant, workspace and workflow.
func CompareLanes(a, b gatehouse.Lane) int {
	return cmp.Or(cmp.Compare(a.Tenant, b.Tenant), cmp.Compare(a.Workspace, b.Workspace),
		cmp.Compare(a.Workflow, b.Workflow))
}

// RunListKey returns the values to which a cursor of a list of runs is bound. Without a filter by time or input, they
// are those of older versions, whose cursors stay valid.
func RunListKey(tenant string, f gatehouse.RunFilter) []string {
	key := []string{tenant, string(f.Status), f.Workflow}
	if !f.Since.IsZero() || !f.Until.IsZero() {
		key = append(key, fmt.Sprintf("created %d to %d", f.Since.UnixMicro(), f.Until.UnixMicro()))
	}
	if f.InputField != "" {
		key = append(key, "input "+f.InputField+"="+f.InputValue)
	}
	return BoundToReader(key, f.ReadBy)
}

// RunIndex is a condition that holds for all runs: the condition of the partial index that serves a list of runs.
func RunIndex(f gatehouse.RunFilter) string {
	switch {
	case f.Workflow != "" && f.Status != "":
		return `r.trigger_type <> ''`
	case f.Workflow != "":
		return `r.workflow <> ''`
	case f.Status != "":
		return `r.status <> ''`
	}
	return `r.id <> ''`
}
