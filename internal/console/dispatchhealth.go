package console

import (
	"strconv"
	"time"

	"github.com/gatehouse-dev/gatehouse"
)

// queueFigures returns one bar for each point in time of the queue; of gives its size, label and title.
func queueFigures(points []gatehouse.QueuePoint, of func(gatehouse.QueuePoint) measure) (list []measure) {
	for _, q := range points {
		f := of(q)
		f.title = clock(q.At) + ": " + f.title
		list = append(list, f)
	}
	return list
}

func depthOf(q gatehouse.QueuePoint) measure {
	n := strconv.Itoa(q.Depth)
	return measure{size: float64(q.Depth), label: n, title: n + " waiting"}
}

func oldestOf(q gatehouse.QueuePoint) measure {
	if q.Depth == 0 {
		return measure{label: "–"}
	}
	old := span(q.Oldest.D())
	return measure{size: float64(q.Oldest), label: old, title: old}
}

// breakerWord is the state of a breaker in words.
func breakerWord(b gatehouse.BreakerState) string {
	switch b.State {
	case gatehouse.BreakerOpen:
		return "open: calls are stopped"
	case gatehouse.BreakerHalfOpen:
		return "half open: one trial"
	}
	return "closed"
}

// hourly counts the pushes of a connector that were applied or failed in the last hour.
func hourly(x gatehouse.ConnectorHealth) string {
	if x.AppliedLastHour+x.FailedLastHour == 0 {
		return "–"
	}
	return strconv.Itoa(x.AppliedLastHour) + " applied, " + strconv.Itoa(x.FailedLastHour) + " failed"
}

// waited is how long a connector's oldest push has waited.
func waited(at time.Time, x gatehouse.ConnectorHealth) string {
	if x.OldestAt == nil || !x.OldestAt.Before(at) {
		return "–"
	}
	return span(at.Sub(*x.OldestAt))
}
