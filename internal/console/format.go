package console

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/gatehouse-dev/gatehouse"
)

// clock shows a time as people compare it: in UTC, to the second.
func clock(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05 UTC") }

// ago says how long ago a time was, in its largest unit.
func (v *view) ago(t time.Time) string {
	d := v.now.Sub(t)
	if d < time.Second {
		return "just now"
	}
	return span(d) + " ago"
}

// left says how much time there is until t, or that it is over.
func (v *view) left(t time.Time) string {
	d := t.Sub(v.now)
	if d <= 0 {
		return "expired"
	}
	return span(d) + " left"
}

// span shows a duration by its two largest units.
func span(d time.Duration) string {
	switch {
	case d < time.Second:
		return strconv.FormatInt(d.Milliseconds(), 10) + " ms"
	case d < time.Minute:
		return strconv.Itoa(int(d.Seconds())) + " s"
	case d < time.Hour:
		return strconv.Itoa(int(d.Minutes())) + " min"
	case d < 24*time.Hour:
		h, m := int(d.Hours()), int(d.Minutes())%60
		if m == 0 {
			return fmt.Sprintf("%d h", h)
		}
		return fmt.Sprintf("%d h %d min", h, m)
	}
	days, h := int(d.Hours())/24, int(d.Hours())%24
	if h == 0 || days > 6 {
		return fmt.Sprintf("%d d", days)
	}
	return fmt.Sprintf("%d d %d h", days, h)
}

// plural counts things: "1 entry", "2 entries".
func plural(n int, one, many string) string {
	return strconv.Itoa(n) + " " + pluralWord(n, one, many)
}

// pluralWord is the word alone.
func pluralWord(n int, one, many string) string {
	if n == 1 {
		return one
	}
	return many
}

// short is an id as far as people tell ids apart.
func short(id string) string {
	prefix, rest, ok := strings.Cut(id, "_")
	if !ok || len(rest) < 12 {
		return id
	}
	return prefix + "_…" + rest[len(rest)-8:]
}

// riskMeaning says in words what a level stands for.
func riskMeaning(r gatehouse.RiskLevel) string {
	switch r {
	case gatehouse.L1:
		return "note or tag"
	case gatehouse.L2:
		return "safe field"
	case gatehouse.L3:
		return "medium write"
	case gatehouse.L4:
		return "creates or removes an entity"
	case gatehouse.L5:
		return "destructive or bulk"
	}
	return "not graded"
}

// statusTone groups the states of actions and pushes by what they mean to a
// reader; the word itself is always shown too.
func statusTone(status string) string {
	switch status {
	case "applied", "approved", "accepted", "delivered", "works":
		return "good"
	case "pending", "requested", "queued", "picking", "pushing", "sent":
		return "open"
	case "unknown", "expired":
		return "warn"
	case "failed", "rejected", "denied", "failing", "off":
		return "bad"
	}
	return "quiet"
}

// statusMark is a sign beside the word, so that colour is never alone.
func statusMark(status string) string {
	switch statusTone(status) {
	case "good":
		return "✓"
	case "open":
		return "○"
	case "warn":
		return "?"
	case "bad":
		return "✕"
	}
	return "–"
}
