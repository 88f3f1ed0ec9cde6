package card

import (
	"fmt"
	"time"

	"github.com/gatehouse-dev/gatehouse"
)

// Label names something in a few words, with a tone for its colour. The words are
// complete: a tone is never the only sign.
type Label struct {
	Code string // as in the API
	Word string // for people
	Tone Tone
}

// Tone is the meaning of a colour.
type Tone string

// The tones.
const (
	Neutral Tone = "neutral"
	Good    Tone = "good"
	Warn    Tone = "warn"
	Bad     Tone = "bad"
	Waiting Tone = "waiting"
)

// Risk names a risk level.
func Risk(r gatehouse.RiskLevel) Label {
	l := Label{Code: r.String(), Word: "unknown risk", Tone: Bad}
	switch r {
	case gatehouse.L1:
		l.Word, l.Tone = "note", Neutral
	case gatehouse.L2:
		l.Word, l.Tone = "safe field", Neutral
	case gatehouse.L3:
		l.Word, l.Tone = "medium write", Warn
	case gatehouse.L4:
		l.Word, l.Tone = "creates or hides", Bad
	case gatehouse.L5:
		l.Word, l.Tone = "destructive or bulk", Bad
	}
	return l
}

// StatusWord names the state of an action.
func StatusWord(s gatehouse.Status) Label {
	l := Label{Code: string(s), Word: string(s), Tone: Neutral}
	switch s {
	case gatehouse.StatusPending:
		l.Word, l.Tone = "waiting for a decision", Waiting
	case gatehouse.StatusApproved:
		l.Word, l.Tone = "approved, not yet sent", Waiting
	case gatehouse.StatusPushing:
		l.Word, l.Tone = "being sent", Waiting
	case gatehouse.StatusApplied:
		l.Tone = Good
	case gatehouse.StatusRejected:
		l.Tone = Bad
	case gatehouse.StatusDenied:
		l.Word, l.Tone = "denied by policy", Bad
	case gatehouse.StatusExpired:
		l.Word = "expired undecided"
	case gatehouse.StatusSuperseded:
		l.Word = "replaced by a revision"
	case gatehouse.StatusFailed:
		l.Tone = Bad
	case gatehouse.StatusUnknown:
		l.Word, l.Tone = "outcome unknown", Warn
	}
	return l
}

// Duration writes a duration with its largest unit: "45 s", "3 min". Hours and days
// also have the next smaller unit, unless it is 0: "2 h 05 min", "4 d 3 h". Duration
// rounds down, a negative duration to "0 s".
func Duration(d time.Duration) string {
	const day = 24 * time.Hour
	switch {
	case d < time.Second:
		return "0 s"
	case d < time.Minute:
		return fmt.Sprintf("%d s", d/time.Second)
	case d < time.Hour:
		return fmt.Sprintf("%d min", d/time.Minute)
	case d < day:
		return withRest(d, time.Hour, "h", time.Minute, "min", "%02d")
	}
	return withRest(d, day, "d", time.Hour, "h", "%d")
}

func withRest(d, unit time.Duration, name string, small time.Duration, smallName, form string) string {
	s := fmt.Sprintf("%d %s", d/unit, name)
	if rest := d % unit / small; rest > 0 {
		s += fmt.Sprintf(" "+form+" %s", rest, smallName)
	}
	return s
}
