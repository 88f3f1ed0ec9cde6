package proof

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gatehouse-dev/gatehouse/internal/proof/legs"
)

// Settings of the long form; see package legs.
const (
	envLog     = "GATEHOUSE_STORM_LOG"     // the log file
	envMinutes = "GATEHOUSE_STORM_MINUTES" // after which no further leg begins; no limit without it
	envCommit  = "GATEHOUSE_STORM_COMMIT"  // what was built, for the log
)

// leg is a running leg.
type leg struct {
	legs.Leg
	rng *rand.Rand
	mu  sync.Mutex
}

// add adds n to a count.
func (l *leg) add(what string, n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.Counts[what] += n
}

func (l *leg) count(what string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.Counts[what]
}

func (l *leg) String() string {
	var parts []string
	for _, k := range slices.Sorted(maps.Keys(l.Counts)) {
		parts = append(parts, fmt.Sprintf("%d %s", l.Counts[k], k))
	}
	return fmt.Sprintf("%s on %s, seed %d, %.0f s: %s", l.Storm, l.Engine, l.Seed, l.Seconds, strings.Join(parts, ", "))
}

// goal is how many of a unit a storm must reach: in the short form, in the long
// form, and in one leg of the long form.
type goal struct {
	unit                 string
	short, long, atATime int
}

// inLegs runs a storm until it has reached its goal: in one leg, or, in the
// long form, in as many legs as needed or as the minutes allow. fn must count
// exactly n of the unit.
func inLegs(t *testing.T, e engine, storm string, g goal, fn func(t *testing.T, l *leg, n int)) {
	t.Helper()
	if !long() {
		n := g.short
		if os.Getenv("GATEHOUSE_STORM") == "quick" {
			n = max(1, n/6)
		}
		oneLeg(t, e, storm, func(t *testing.T, l *leg) { fn(t, l, n) })
		return
	}
	end := time.Now().Add(1000 * time.Hour)
	if m := os.Getenv(envMinutes); m != "" {
		minutes, err := strconv.ParseFloat(m, 64)
		if err != nil {
			t.Fatalf("%s: %v", envMinutes, err)
		}
		end = time.Now().Add(time.Duration(minutes * float64(time.Minute)))
	}
	for n := 1; ; n++ {
		all, err := legs.Read(os.Getenv(envLog))
		if err != nil {
			t.Fatal(err)
		}
		rest := g.long - legs.Sum(all, storm, e.name, g.unit)
		if rest <= 0 || time.Now().After(end) {
			t.Logf("%s on %s: %d of %d %s are left", storm, e.name, max(rest, 0), g.long, g.unit)
			return
		}
		ok := t.Run("leg "+strconv.Itoa(n), func(t *testing.T) {
			oneLeg(t, e, storm, func(t *testing.T, l *leg) { fn(t, l, min(rest, g.atATime)) })
		})
		if !ok || os.Getenv(envLog) == "" && n*g.atATime >= g.long {
			return
		}
	}
}

// failpointsOn returns the failpoints at which the servers of a leg kill themselves: all in the long form,
// else one half on SQLite, and the other half on PostgreSQL.
func failpointsOn(e engine, names []string) (half []string) {
	if long() {
		return names
	}
	for i, name := range names {
		if odd := i%2 == 1; odd == (oddSeeds() == (e.name == onSQLite.name)) {
			half = append(half, name)
		}
	}
	return half
}

// oneLeg runs fn and logs its result, also after a failure.
func oneLeg(t *testing.T, e engine, storm string, fn func(t *testing.T, l *leg)) {
	t.Helper()
	l := &leg{Leg: legs.Leg{
		Storm: storm, Engine: e.name, Commit: os.Getenv(envCommit), Began: time.Now(), Counts: make(map[string]int),
		Points: make(map[string]int),
	}}
	l.rng, l.Seed = seeded(t)
	defer func() {
		l.Seconds = time.Since(l.Began).Seconds()
		l.Failed = t.Failed()
		t.Log(l)
		if path := os.Getenv(envLog); path != "" {
			if err := legs.Append(path, &l.Leg); err != nil {
				t.Error(err)
			}
		}
	}()
	fn(t, l)
}
