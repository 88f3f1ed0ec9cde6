package gatehouse

import (
	"errors"
	"fmt"
	"time"
)

// QuietHours are the configured hours of each day in which messages wait: times of
// day such as 20:00 and 07:00, and a time zone such as Europe/Berlin; "" is UTC.
type QuietHours struct {
	// From is when the quiet hours begin, as 15:04.
	From string `json:"from"`
	// To is when they end; on the next day if it is before From.
	To string `json:"to"`
	// Zone is an IANA name.
	Zone string `json:"zone,omitempty"`
}

// Quiet are quiet hours that have been read. A nil Quiet has no hours.
type Quiet struct {
	from, to int // minutes of the day
	zone     *time.Location
}

// Read checks the hours.
func (h QuietHours) Read() (*Quiet, error) {
	q := new(Quiet)
	for i, minutes := range []*int{&q.from, &q.to} {
		text := []string{h.From, h.To}[i]
		at, err := time.Parse("15:04", text)
		if err != nil {
			return nil, fmt.Errorf("%s is not a time of day such as 20:00", Quote(text))
		}
		*minutes = at.Hour()*60 + at.Minute()
	}
	if q.from == q.to {
		return nil, errors.New("from and to must differ")
	}
	var err error
	if q.zone, err = time.LoadLocation(h.Zone); err != nil || h.Zone == "Local" {
		return nil, fmt.Errorf("there is no time zone %s", Quote(h.Zone))
	}
	return q, nil
}

// After returns the end of the quiet hours that a time is in, else the time itself.
func (q *Quiet) After(at time.Time) time.Time {
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
	end := time.Date(there.Year(), there.Month(), day, q.to/60, q.to%60, 0, 0, q.zone)
	// For a time of day that summer time skips, Date may return an earlier one.
	_, offset := end.Zone()
	shown := end.UTC().Add(time.Duration(offset) * time.Second)
	early := time.Date(there.Year(), there.Month(), day, q.to/60, q.to%60, 0, 0, time.UTC).Sub(shown)
	return end.Add(max(early, 0)).UTC()
}
