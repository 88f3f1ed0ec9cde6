package legs

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"
)

// figure is a line in the table of figures to reach on each engine.
type figure struct {
	name  string
	units []string // the units to add up
	long  int      // the goal of the long form on each engine
}

var figures = []figure{
	{"SIGKILLs under load", []string{"SIGKILLs at random", "SIGKILLs at failpoints"}, 2000},
	{"linearizability histories", []string{"linearizability histories"}, 2000},
	{"ceiling attempts at the limit", []string{"attempts at a ceiling"}, 100_000},
	{"response-lost calls", []string{"answers lost to clients"}, 2000},
	{"stopped (zombie) workers", []string{"stopped workers"}, 500},
	{"SIGKILLs under runs of twenty steps",
		[]string{"SIGKILLs under runs", "SIGKILLs at failpoints of runs", "SIGKILLs of the worker"}, 1000},
	{"stopped (zombie) holders of steps", []string{"stopped holders of steps"}, 200},
}

// Engines are the columns of a report.
var Engines = []string{"sqlite", "postgres"}

// Markdown writes the report of a log. points are all existing failpoints.
func Markdown(w io.Writer, all []*Leg, points []string) error {
	var out strings.Builder
	failed, began, seconds := 0, time.Time{}, 0.0
	commits := map[string]bool{}
	for _, l := range all {
		if l.Failed {
			failed++
		}
		if began.IsZero() || l.Began.Before(began) {
			began = l.Began
		}
		if l.Commit != "" {
			commits[l.Commit] = true
		}
		seconds += l.Seconds
	}
	fmt.Fprintf(&out, `# Storms

`+"`make storm`"+
		` writes this page. [The table of tests](README.md#in-every-run) says what each storm does. A leg is one
world with one seed, and ends with all invariants.

Legs that failed: %d, of %d. First leg: %s. Time in storms: %s.
`, failed, len(all), began.UTC().Format("2006-01-02"), duration(seconds))
	if len(commits) > 0 {
		fmt.Fprintf(&out, "Built from: %s.\n", strings.Join(slices.Sorted(maps.Keys(commits)), ", "))
	}
	out.WriteString(
		"\n## Figures\n\nA failed leg counts only in the last column.\n\n| figure | long form, on each engine | SQLite | " +
			"PostgreSQL | legs that failed |\n|---|---|---|---|---|\n")
	for _, f := range figures {
		fmt.Fprintf(&out, "| %s | %d |", f.name, f.long)
		bad := 0
		for _, e := range Engines {
			n := 0
			for _, unit := range f.units {
				n += Sum(all, "", e, unit)
			}
			fmt.Fprintf(&out, " %d |", n)
		}
		for _, l := range all {
			if l.Failed && slices.ContainsFunc(f.units, func(u string) bool { return l.Counts[u] > 0 }) {
				bad++
			}
		}
		fmt.Fprintf(&out, " %d |\n", bad)
	}
	writePoints(&out, all, points)
	if failed > 0 {
		out.WriteString("\n## Legs that failed\n\n| storm | engine | seed | began (UTC) | time |\n|---|---|---|---|---|\n")
	}
	for _, l := range all {
		if l.Failed {
			fmt.Fprintf(&out, "| %s | %s | %d | %s | %s |\n",
				l.Storm, l.Engine, l.Seed, l.Began.UTC().Format("2006-01-02 15:04:05"), duration(l.Seconds))
		}
	}
	_, err := io.WriteString(w, out.String())
	return err
}

// writePoints reports, for each engine, how often processes killed themselves at the
// failpoint with the fewest kills, and lists the failpoints that lack a kill on an engine.
func writePoints(out *strings.Builder, all []*Leg, points []string) {
	least := map[string]int{}
	met := 0
	var never []string

	for _, p := range points {
		kills := map[string]int{}
		for _, l := range all {
			if !l.Failed {
				kills[l.Engine] += l.Points[p]
			}
		}
		if kills["sqlite"] == 0 || kills["postgres"] == 0 {
			never = append(never, "`"+p+"`")
			continue
		}
		met++
		for _, e := range Engines {
			if met == 1 || kills[e] < least[e] {
				least[e] = kills[e]
			}
		}
	}

	out.WriteString("\n## Failpoints\n\n")
	if met > 0 {
		fmt.Fprintf(out,
			"At each of %d failpoints processes killed themselves under load, at least %d times on SQLite and %d times on "+
				"PostgreSQL.\n",
			met, least["sqlite"], least["postgres"])
	}
	if len(never) > 0 {
		fmt.Fprintf(out, "Not met in storms on at least one engine: %s.\n", strings.Join(never, ", "))
	}
}

func duration(seconds float64) string {
	return time.Duration(seconds * float64(time.Second)).Round(time.Second).String()
}
