package console

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/gatehouse-dev/gatehouse"
)

// clock formats a time in UTC with seconds, so that people can compare it.
func clock(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05 UTC") }

// ago says how long ago a time was, or in how long it comes.
func (v *view) ago(t time.Time) string {
	d := v.now.Sub(t)
	switch {
	case d < -time.Minute: // the clocks of two machines differ less
		return "in " + span(-d)
	case d < time.Second:
		return "just now"
	}
	return span(d) + " ago"
}

// until says in how long t comes, "now" if it has come.
func (v *view) until(t time.Time) string {
	if d := t.Sub(v.now); d > 0 {
		return "in " + span(d)
	}
	return "now"
}

// left says how much time remains until t, or that t has passed.
func (v *view) left(t time.Time) string {
	d := t.Sub(v.now)
	if d <= 0 {
		return "expired"
	}
	return span(d) + " left"
}

// span formats a duration in its largest unit. From an hour and below a week, it adds the next smaller unit,
// unless that is zero.
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

// pluralWord is the word without the number.
func pluralWord(n int, one, many string) string {
	if n == 1 {
		return one
	}
	return many
}

// short is the part of an id by which people tell ids apart.
func short(id string) string {
	prefix, rest, ok := strings.Cut(id, "_")
	if !ok || len(rest) < 12 {
		return id
	}
	return prefix + "_…" + rest[len(rest)-8:]
}

// riskMeaning explains a risk level in words.
func riskMeaning(r gatehouse.RiskLevel) string {
	return cmp.Or(map[gatehouse.RiskLevel]string{
		gatehouse.L1: "note or tag",
		gatehouse.L2: "safe field",
		gatehouse.L3: "medium write",
		gatehouse.L4: "creates or removes an entity",
		gatehouse.L5: "destructive or bulk",
	}[r], "not graded")
}

// statusTone groups the states of actions, pushes, messages and channels by their meaning to a reader. The
// state's word is always shown too.
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

// statusMark is a symbol beside the word, so that no meaning depends on colour alone.
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
