package notify

import (
	"fmt"
	"time"

	"github.com/gatehouse-dev/gatehouse"
)

// Quiet are a channel's quiet hours, in which its messages wait.
type Quiet struct {
	from, to int // minutes of the day
	zone     *time.Location
}

// NewQuiet reads quiet hours such as from 20:00 to 07:00 in Europe/Berlin; "" is UTC.
func NewQuiet(from, to, zone string) (*Quiet, error) {
	q := new(Quiet)
	for text, minutes := range map[string]*int{from: &q.from, to: &q.to} {
		at, err := time.Parse("15:04", text)
		if err != nil {
			return nil, fmt.Errorf("%s is no time of day, such as 20:00", gatehouse.Quote(text))
		}
		*minutes = at.Hour()*60 + at.Minute()
	}
	if from == to {
		return nil, fmt.Errorf("from and to must differ")
	}
	var err error
	if q.zone, err = time.LoadLocation(zone); err != nil || zone == "Local" {
		return nil, fmt.Errorf("there is no time zone %s", gatehouse.Quote(zone))
	}
	return q, nil
}

// after returns the end of the quiet hours that a time is in, else the time itself.
func (q *Quiet) after(at time.Time) time.Time {
	if q == nil {
		return at
	}
	there := at.In(q.zone)
	minute := there.Hour()*60 + there.Minute()
	quiet := q.from <= minute && minute < q.to
	if q.from > q.to { // over midnight
		quiet = minute >= q.from || minute < q.to
	}
	if !quiet {
		return at
	}
	day := there.Day()
	if minute >= q.to {
		day++
	}
	return time.Date(there.Year(), there.Month(), day, q.to/60, q.to%60, 0, 0, q.zone).UTC()
}

// dueAt is when a message is sent: at once, or after the channel's quiet hours. A question waits for
// at most half of the time that is left to answer it.
func (c *Configured) dueAt(now time.Time, kind gatehouse.NotificationKind, a *gatehouse.Action) time.Time {
	due := c.Quiet.after(now)
	if !kind.Asks() || a.Approval == nil {
		return due
	}
	if half := now.Add(a.Approval.ExpiresAt.Sub(now) / 2); half.Before(due) {
		return half
	}
	return due
}
