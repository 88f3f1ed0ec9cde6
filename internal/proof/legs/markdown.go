package legs

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"
)

// figure is a line of the table of figures to reach on each engine.
type figure struct {
	name  string
	units []string // whose sum it is
	long  int
}

var figures = []figure{
	{"SIGKILLs under load", []string{"SIGKILLs at random", "SIGKILLs at failpoints"}, 2000},
	{"linearizability histories", []string{"linearizability histories"}, 2000},
	{"ceiling attempts at the limit", []string{"attempts at a ceiling"}, 100_000},
	{"response-lost calls", []string{"answers lost to clients"}, 2000},
	{"stopped (zombie) workers", []string{"stopped workers"}, 500},
	{"SIGKILLs under runs of twenty steps", []string{"SIGKILLs under runs", "SIGKILLs at failpoints of runs", "SIGKILLs of the worker"}, 1000},
	{"stopped (zombie) holders of steps", []string{"stopped holders of steps"}, 200},
}

// Engines are those that a report has columns for.
var Engines = []string{"sqlite", "postgres"}

// Markdown writes the report of a log. points are all failpoints there are.
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
	fmt.Fprintf(&out, `# What the storms came to

Written by scripts/storm from the log of its runs; [reliability.md](reliability.md) says what each storm does and demands. A leg is one
world with a seed of its own, and ends with every invariant. Legs that failed: %d, of %d. First leg: %s. Time in storms: %s.
`, failed, len(all), began.UTC().Format("2006-01-02"), duration(seconds))
	if len(commits) > 0 {
		fmt.Fprintf(&out, "Built from: %s.\n", strings.Join(slices.Sorted(maps.Keys(commits)), ", "))
	}
	out.WriteString("\n## Figures\n\nViolations are legs in which an invariant was broken or the storm did not count.\n\n| figure | long form, on each engine | SQLite | PostgreSQL | violations |\n|---|---|---|---|---|\n")
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
	out.WriteString("\n## Failpoints\n\nHow often a process killed itself there, under load.\n\n| place | SQLite | PostgreSQL |\n|---|---|---|\n")
	for _, p := range points {
		fmt.Fprintf(&out, "| `%s` |", p)
		for _, e := range Engines {
			n := 0
			for _, l := range all {
				if l.Engine == e && !l.Failed {
					n += l.Points[p]
				}
			}
			fmt.Fprintf(&out, " %d |", n)
		}
		out.WriteString("\n")
	}
	out.WriteString("\n## All counts\n\n")
	writeCounts(&out, all)
	out.WriteString("\n## Legs\n\n| storm | engine | seed | began (UTC) | time | |\n|---|---|---|---|---|---|\n")
	for _, l := range all {
		end := "held"
		if l.Failed {
			end = "**failed**"
		}
		fmt.Fprintf(&out, "| %s | %s | %d | %s | %s | %s |\n", l.Storm, l.Engine, l.Seed, l.Began.UTC().Format("2006-01-02 15:04:05"), duration(l.Seconds), end)
	}
	_, err := io.WriteString(w, out.String())
	return err
}

func writeCounts(out *strings.Builder, all []*Leg) {
	type key struct{ storm, unit string }
	keys := map[key]bool{}
	for _, l := range all {
		for unit := range l.Counts {
			keys[key{l.Storm, unit}] = true
		}
	}
	sorted := slices.SortedFunc(maps.Keys(keys), func(a, b key) int {
		return strings.Compare(a.storm+"\x00"+a.unit, b.storm+"\x00"+b.unit)
	})
	out.WriteString("| storm | counted | SQLite | PostgreSQL |\n|---|---|---|---|\n")
	for _, k := range sorted {
		fmt.Fprintf(out, "| %s | %s |", k.storm, k.unit)
		for _, e := range Engines {
			fmt.Fprintf(out, " %d |", Sum(all, k.storm, e, k.unit))
		}
		out.WriteString("\n")
	}
}

func duration(seconds float64) string {
	return time.Duration(seconds * float64(time.Second)).Round(time.Second).String()
}
