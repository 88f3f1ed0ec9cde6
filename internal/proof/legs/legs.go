// Package legs records the results of the storms, the tests of package proof under
// load and faults. Their long form runs in legs, each with its own gate and seed,
// and each leg writes a line of JSON to a log. Recorded legs are not repeated, so
// the long form can be run in parts. The report is made from the log.
package legs

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"
)

// Leg is the result of one leg.
type Leg struct {
	Storm  string `json:"storm"`
	Engine string `json:"engine"`
	// Commit names the build, "" when it is unknown.
	Commit  string    `json:"commit,omitempty"`
	Seed    uint64    `json:"seed"`
	Began   time.Time `json:"began"`
	Seconds float64   `json:"seconds"`
	// Counts holds the counts by their unit, such as "SIGKILLs at random".
	Counts map[string]int `json:"counts"`
	// Points are the failpoints that killed a process, with counts.
	Points map[string]int `json:"points,omitempty"`
	// Failed says that an invariant was violated, or that the storm did not
	// reach its goal.
	Failed bool `json:"failed"`
}

// Read returns the legs of a log; none when the log does not exist.
func Read(path string) (all []*Leg, err error) {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	for n := 1; lines.Scan(); n++ {
		l := new(Leg)
		if err := json.Unmarshal(lines.Bytes(), l); err != nil {
			return nil, fmt.Errorf("%s: line %d: %w", path, n, err)
		}
		all = append(all, l)
	}
	return all, lines.Err()
}

// Append adds a leg to a log and creates the log if needed.
func Append(path string, l *Leg) error {
	line, err := json.Marshal(l)
	if err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(append(line, '\n')) // in one write, because others append too
	return errors.Join(err, f.Close())
}

// Sum adds up a count over the successful legs of a storm. "" means any storm
// or any engine.
func Sum(all []*Leg, storm, engine, unit string) (n int) {
	for _, l := range all {
		if (storm == "" || l.Storm == storm) && (engine == "" || l.Engine == engine) && !l.Failed {
			n += l.Counts[unit]
		}
	}
	return n
}
