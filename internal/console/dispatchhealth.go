package console

import (
	"strconv"
	"time"

	"github.com/gatehouse-dev/gatehouse"
)

// The size of a chart of the queue, in its own units.
const (
	queueWidth  = 480
	queueHeight = 72
)

// queueBar is one point of the queue, as a bar of a chart.
type queueBar struct {
	x, y, width, height, title string
}

// queueBars draws one figure of the queue over time; label says a point's value.
func queueBars(
	points []gatehouse.QueuePoint, value func(gatehouse.QueuePoint) int64, label func(gatehouse.QueuePoint) string,
) (bars []queueBar) {
	var most int64
	for _, q := range points {
		most = max(most, value(q))
	}
	if most == 0 {
		return nil
	}
	step := float64(queueWidth) / float64(len(points))
	for i, q := range points {
		n := value(q)
		if n == 0 {
			continue
		}
		height := max(2, float64(queueHeight)*float64(n)/float64(most))
		bars = append(bars, queueBar{
			x: decimals(float64(i) * step), y: decimals(queueHeight - height), width: decimals(step - 1.5),
			height: decimals(height),
			title:  clock(q.At) + ": " + label(q),
		})
	}
	return bars
}

func decimals(x float64) string { return strconv.FormatFloat(x, 'f', 1, 64) }

func depthOf(q gatehouse.QueuePoint) int64  { return int64(q.Depth) }
func oldestOf(q gatehouse.QueuePoint) int64 { return int64(q.Oldest) }

func depthWord(q gatehouse.QueuePoint) string { return strconv.Itoa(q.Depth) + " waiting" }

func oldestWord(q gatehouse.QueuePoint) string {
	if q.Depth == 0 {
		return "–"
	}
	return span(q.Oldest.D())
}

// deepest and slowest are the points with the most pushes and with the longest wait.
func deepest(points []gatehouse.QueuePoint) (most gatehouse.QueuePoint) {
	for _, q := range points {
		if q.Depth > most.Depth {
			most = q
		}
	}
	return most
}

func slowest(points []gatehouse.QueuePoint) (most gatehouse.QueuePoint) {
	for _, q := range points {
		if q.Oldest > most.Oldest {
			most = q
		}
	}
	return most
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

// hourly is the rate of a connector in the last hour.
func hourly(x gatehouse.ConnectorHealth) string {
	if x.AppliedLastHour+x.FailedLastHour == 0 {
		return "–"
	}
	return strconv.Itoa(x.AppliedLastHour) + " applied, " + strconv.Itoa(x.FailedLastHour) + " failed"
}

// now is the last point of the queue.
func nowPoint(points []gatehouse.QueuePoint) (q gatehouse.QueuePoint) {
	if len(points) > 0 {
		q = points[len(points)-1]
	}
	return q
}

// waitingSince is how long a connector's oldest push has waited.
func waitingSince(at time.Time, x gatehouse.ConnectorHealth) string {
	if x.OldestAt == nil || !x.OldestAt.Before(at) {
		return "–"
	}
	return span(at.Sub(*x.OldestAt))
}
