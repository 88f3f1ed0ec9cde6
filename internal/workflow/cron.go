package workflow

import (
	"errors"
	"fmt"
	"math/bits"
	"strconv"
	"strings"
	"time"

	// Embeds the zone database for machines without one.
	_ "time/tzdata"
)

// Cron is a schedule in the five fields of cron: minute, hour, day of the
// month, month, day of the week (0 or 7 is Sunday). A field is a comma-separated
// list of items. An item is *, a number or a range a-b, optionally with a step /n. A
// month or a day of the week can also be its English three-letter name. As in cron,
// when neither day field begins with *, a day that matches one of them is enough.
//
// Times are wall-clock times in the zone. When the hours are restricted, a time
// that the clock skips in spring falls on the end of the gap, and a time that
// occurs twice in autumn matches the first time only. When every hour matches,
// the schedule follows real time.
type Cron struct {
	Spec, Zone string

	minute, hour, day, month, weekday uint64 // one bit per value
	anyHour, anyDay, anyWeekday       bool
	location                          *time.Location
}

// searchDays bounds the search: the longest gap lies between two 29ths of
// February on the same weekday, across a century without a leap day: 40 years.
const searchDays = 366 * 41

var (
	monthNames   = []string{"jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"}
	weekdayNames = []string{"sun", "mon", "tue", "wed", "thu", "fri", "sat"}
)

// ParseCron reads a schedule; zone is a name of the IANA database, "" for UTC.
func ParseCron(spec, zone string) (*Cron, error) {
	c := &Cron{Spec: spec, Zone: zone}
	if zone == "" {
		c.Zone = "UTC"
	}
	var err error
	if c.location, err = time.LoadLocation(c.Zone); err != nil || c.Zone == "Local" {
		return nil, fmt.Errorf("%q is not a time zone such as Europe/Berlin", zone)
	}
	fields := strings.Fields(spec)
	if len(fields) != 5 {
		return nil, errors.New("a schedule has five fields: minute, hour, day, month, weekday")
	}
	for i, f := range []struct {
		name      string
		set       *uint64
		low, high int
		names     []string
	}{
		{"minute", &c.minute, 0, 59, nil},
		{"hour", &c.hour, 0, 23, nil},
		{"day", &c.day, 1, 31, nil},
		{"month", &c.month, 1, 12, monthNames},
		{"weekday", &c.weekday, 0, 7, weekdayNames},
	} {
		if *f.set, err = cronField(fields[i], f.low, f.high, f.names); err != nil {
			return nil, fmt.Errorf("%s: %w", f.name, err)
		}
	}
	if c.weekday&(1<<7) != 0 {
		c.weekday |= 1
	}
	c.anyHour = bits.OnesCount64(c.hour) == 24
	c.anyDay, c.anyWeekday = strings.HasPrefix(fields[2], "*"), strings.HasPrefix(fields[4], "*")
	if c.Next(time.Date(2023, 1, 1, 0, 0, 0, 0, time.UTC)).IsZero() {
		return nil, errors.New("the schedule never occurs")
	}
	return c, nil
}

func cronField(s string, low, high int, names []string) (set uint64, err error) {
	for _, item := range strings.Split(s, ",") {
		from, to, step := low, high, 1
		span, every, stepped := strings.Cut(item, "/")
		if stepped {
			if step, err = cronNumber(every, 1, high, nil); err != nil {
				return 0, err
			}
		}
		if span != "*" {
			first, last, isRange := strings.Cut(span, "-")
			if from, err = cronNumber(first, low, high, names); err != nil {
				return 0, err
			}
			switch {
			case isRange:
				if to, err = cronNumber(last, low, high, names); err != nil {
					return 0, err
				}
				if to < from {
					return 0, fmt.Errorf("the range %q ends before it begins", item)
				}
			case !stepped:
				to = from
			}
		}
		for v := from; v <= to; v += step {
			set |= 1 << v
		}
	}
	return set, nil
}

func cronNumber(s string, low, high int, names []string) (int, error) {
	for i, name := range names {
		if strings.EqualFold(s, name) {
			return i + low, nil
		}
	}
	n, err := strconv.Atoi(s)
	if err != nil || n < low || n > high || len(s) > 2 || s[0] == '+' || s[0] == '-' {
		return 0, fmt.Errorf("%q is not a number from %d to %d", s, low, high)
	}
	return n, nil
}

// Next returns the first time after the given one; zero when there is none.
func (c *Cron) Next(after time.Time) time.Time {
	local := after.In(c.location)
	// A day is a date at noon UTC, so that no zone shifts it.
	day := time.Date(local.Year(), local.Month(), local.Day()-1, 12, 0, 0, 0, time.UTC)
	for range searchDays {
		if c.onDay(day) {
			if next := c.firstOn(day, after); !next.IsZero() {
				return next.UTC()
			}
		}
		day = day.AddDate(0, 0, 1)
	}
	return time.Time{}
}

func (c *Cron) onDay(day time.Time) bool {
	if c.month&(1<<day.Month()) == 0 {
		return false
	}
	inMonth, inWeek := c.day&(1<<day.Day()) != 0, c.weekday&(1<<day.Weekday()) != 0
	if c.anyDay || c.anyWeekday {
		return inMonth && inWeek
	}
	return inMonth || inWeek
}

// firstOn returns the earliest time on the day that is after the given one.
func (c *Cron) firstOn(day, after time.Time) (first time.Time) {
	for h := range 24 {
		if c.hour&(1<<h) == 0 {
			continue
		}
		for m := range 60 {
			if c.minute&(1<<m) == 0 {
				continue
			}
			for _, t := range c.instants(day, h, m) {
				if t.After(after) && (first.IsZero() || t.Before(first)) {
					first = t
				}
			}
		}
	}
	return first
}

// instants returns the instants of a wall-clock time on a day: one on most days. See
// [Cron] for the days on which the clock changes.
func (c *Cron) instants(day time.Time, hour, minute int) []time.Time {
	wall := time.Date(day.Year(), day.Month(), day.Day(), hour, minute, 0, 0, time.UTC)
	_, before := wall.Add(-24 * time.Hour).In(c.location).Zone()
	_, after := wall.Add(24 * time.Hour).In(c.location).Zone()
	early := wall.Add(-time.Duration(before) * time.Second)
	late := wall.Add(-time.Duration(after) * time.Second)
	if before == after {
		return []time.Time{early}
	}
	shown := func(t time.Time) bool {
		_, offset := t.In(c.location).Zone()
		return t.Add(time.Duration(offset) * time.Second).Equal(wall)
	}
	switch isEarly, isLate := shown(early), shown(late); {
	case isEarly && isLate && c.anyHour:
		return []time.Time{early, late}
	case isEarly:
		return []time.Time{early}
	case isLate:
		return []time.Time{late}
	case c.anyHour:
		return nil
	}
	gapEnd, _ := early.In(c.location).ZoneBounds()
	return []time.Time{gapEnd}
}
