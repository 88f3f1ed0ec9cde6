package workflow_test

import (
	"maps"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/gatehouse-dev/gatehouse/internal/workflow"
)

// TestCron checks the next times of schedules, across both clock changes.
func TestCron(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, spec, zone, after string
		want                    []string
	}{
		{"every minute", "* * * * *", "", "2026-11-21T08:30:30Z", []string{"2026-11-21T08:31:00Z", "2026-11-21T08:32:00Z"}},
		{"strictly after", "30 8 * * *", "", "2026-11-21T08:30:00Z", []string{"2026-11-22T08:30:00Z"}},
		{"steps and lists", "*/20,5 8-10/2 * * *", "", "2026-11-21T08:00:00Z", []string{
			"2026-11-21T08:05:00Z", "2026-11-21T08:20:00Z", "2026-11-21T08:40:00Z", "2026-11-21T10:00:00Z"}},
		{"from with step", "50/4 0 * * *", "", "2026-11-21T00:00:00Z",
			[]string{"2026-11-21T00:50:00Z", "2026-11-21T00:54:00Z", "2026-11-21T00:58:00Z", "2026-11-22T00:50:00Z"}},
		{"working days", "0 6 * * 1-5", "", "2026-11-20T07:00:00Z", []string{"2026-11-23T06:00:00Z", "2026-11-24T06:00:00Z"}},
		{"names", "0 6 * jan,DEC Sun", "", "2026-11-21T00:00:00Z", []string{"2026-12-06T06:00:00Z"}},
		{"seven is Sunday", "0 6 * * 7", "", "2026-11-21T00:00:00Z",
			[]string{"2026-11-22T06:00:00Z", "2026-11-29T06:00:00Z"}},
		{"either day", "0 0 13 * 5", "", "2026-11-01T00:00:00Z",
			[]string{"2026-11-06T00:00:00Z", "2026-11-13T00:00:00Z", "2026-11-20T00:00:00Z", "2026-11-27T00:00:00Z",
				"2026-12-04T00:00:00Z", "2026-12-11T00:00:00Z", "2026-12-13T00:00:00Z"}},
		{"last day of some months", "0 0 31 * *", "", "2026-01-31T00:00:00Z",
			[]string{"2026-03-31T00:00:00Z", "2026-05-31T00:00:00Z"}},
		{"leap day", "0 0 29 2 *", "", "2026-01-01T00:00:00Z", []string{"2028-02-29T00:00:00Z", "2032-02-29T00:00:00Z"}},
		{"leap day over 2100", "0 0 29 2 *", "", "2096-03-01T00:00:00Z", []string{"2104-02-29T00:00:00Z"}},
		{"leap day on a Sunday", "0 0 29 2 */7", "", "2026-01-01T00:00:00Z",
			[]string{"2032-02-29T00:00:00Z", "2060-02-29T00:00:00Z", "2088-02-29T00:00:00Z", "2128-02-29T00:00:00Z"}},
		{"in a zone", "0 6 * * *", "Europe/Berlin", "2026-11-21T00:00:00Z", []string{"2026-11-21T05:00:00Z"}},
		{"after in another zone", "0 6 * * *", "Asia/Kolkata", "2026-11-21T06:00:00+14:00", []string{"2026-11-21T00:30:00Z"}},
		// Berlin jumps from 02:00 to 03:00 on 2026-03-29, and back from 03:00
		// to 02:00 on 2026-10-25.
		{"leapt over: at the end of the leap, once", "0,30 2 * * *", "Europe/Berlin", "2026-03-28T12:00:00Z",
			[]string{"2026-03-29T01:00:00Z", "2026-03-30T00:00:00Z"}},
		{"not leapt over", "0 3 * * *", "Europe/Berlin", "2026-03-28T12:00:00Z",
			[]string{"2026-03-29T01:00:00Z", "2026-03-30T01:00:00Z"}},
		{"shown twice: the first time", "30 2 * * *", "Europe/Berlin", "2026-10-24T12:00:00Z",
			[]string{"2026-10-25T00:30:00Z", "2026-10-26T01:30:00Z"}},
		{"between the two", "30 2 * * *", "Europe/Berlin", "2026-10-25T01:00:00Z", []string{"2026-10-26T01:30:00Z"}},
		{"hourly over the leap", "30 * * * *", "Europe/Berlin", "2026-03-29T00:00:00Z",
			[]string{"2026-03-29T00:30:00Z", "2026-03-29T01:30:00Z", "2026-03-29T02:30:00Z"}},
		{"hourly over the repetition", "30 * * * *", "Europe/Berlin", "2026-10-25T00:00:00Z",
			[]string{"2026-10-25T00:30:00Z", "2026-10-25T01:30:00Z", "2026-10-25T02:30:00Z"}},
		{"quarters over the repetition", "*/15 * * * *", "Europe/Berlin", "2026-10-25T00:45:00Z",
			[]string{"2026-10-25T01:00:00Z", "2026-10-25T01:15:00Z"}},
		{"half an hour's change", "0 2 * * *", "Australia/Lord_Howe", "2026-10-03T00:00:00Z",
			[]string{"2026-10-03T15:30:00Z", "2026-10-04T15:00:00Z"}},
		{"midnight leapt over", "0 0 * * *", "America/Havana", "2026-03-07T12:00:00Z",
			[]string{"2026-03-08T05:00:00Z", "2026-03-09T04:00:00Z"}},
		{"a day leapt over", "0 12 * * *", "Pacific/Apia", "2011-12-29T23:00:00Z",
			[]string{"2011-12-30T10:00:00Z", "2011-12-30T22:00:00Z"}},
	} {
		cron, err := workflow.ParseCron(c.spec, c.zone)
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		now, err := time.Parse(time.RFC3339, c.after)
		if err != nil {
			t.Fatal(err)
		}
		for i, want := range c.want {
			now = cron.Next(now)
			if got := now.Format(time.RFC3339); got != want {
				t.Errorf("%s: number %d is %s, want %s", c.name, i+1, got, want)
				break
			}
		}
	}
}

// TestCronRefuses checks invalid schedules.
func TestCronRefuses(t *testing.T) {
	t.Parallel()
	for _, spec := range []string{
		"", "* * * *", "* * * * * *", "60 * * * *", "* 24 * * *", "* * 0 * *", "* * 32 * *", "* * * 13 * *", "* * * 0 *",
		"* * * * 8",
		"a * * * *", "-1 * * * *", "+1 * * * *", "1- * * * *", "5-1 * * * *", "*/0 * * * *", "*/61 * * * *", "1,,2 * * * *",
		"* * * foo *",
		"0 0 30 2 *", "0 0 31 4,6,9,11 *", "001 * * * *", "@daily", "1/ * * * *", "*-5 * * * *", "TZ=UTC * * * * *",
	} {
		if c, err := workflow.ParseCron(spec, ""); err == nil {
			t.Errorf("%q is accepted: %+v", spec, c)
		}
	}
	for _, zone := range []string{"Local", "Mars/Base", "../etc/passwd", "/etc/localtime", "CET "} {
		if _, err := workflow.ParseCron("* * * * *", zone); err == nil {
			t.Errorf("the zone %q is accepted", zone)
		}
	}
}

// TestCronProperties: the next time is later, and in UTC. The wall clock then shows what the schedule says, and
// does not in the first 90 minutes before it. It stays the next time until it comes.
func TestCronProperties(t *testing.T) {
	t.Parallel()
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	shown := map[string]func(time.Time) bool{
		"*/7 * * * *":    func(at time.Time) bool { return at.Minute()%7 == 0 },
		"13 * * * *":     func(at time.Time) bool { return at.Minute() == 13 },
		"*/30 * * * 0":   func(at time.Time) bool { return at.Minute()%30 == 0 && at.Weekday() == time.Sunday },
		"5 */1 29 3 *":   func(at time.Time) bool { return at.Format("1-2 :4") == "3-29 :5" },
		"0,59 * 25 10 *": func(at time.Time) bool { return at.Minute()%59 == 0 && at.Format("1-2") == "10-25" },
	}
	rapid.Check(t, func(t *rapid.T) {
		spec := rapid.SampledFrom(slices.Sorted(maps.Keys(shown))).Draw(t, "spec")
		cron, err := workflow.ParseCron(spec, "Europe/Berlin")
		if err != nil {
			t.Fatal(err)
		}
		begin := time.Date(2026, rapid.SampledFrom([]time.Month{3, 10, 6}).Draw(t, "month"),
			rapid.IntRange(22, 30).Draw(t, "day"),
			rapid.IntRange(0, 23).Draw(t, "hour"), rapid.IntRange(0, 59).Draw(t, "minute"), 0, 0, time.UTC)
		next := cron.Next(begin)
		if !next.After(begin) || next.Location() != time.UTC {
			t.Fatalf("%s after %s", next, begin)
		}
		for m := begin.Add(time.Minute); m.Before(next) && m.Before(begin.Add(90*time.Minute)); m = m.Add(time.Minute) {
			if shown[spec](m.In(berlin)) {
				t.Fatalf("%s (%s) was left out before %s", m, m.In(berlin), next)
			}
		}
		if !shown[spec](next.In(berlin)) || next.Second() != 0 {
			t.Fatalf("%s (%s) is no time of %s", next, next.In(berlin), spec)
		}
		if again := cron.Next(next.Add(-time.Second)); !again.Equal(next) {
			t.Fatalf("%s, then %s", next, again)
		}
	})
}
