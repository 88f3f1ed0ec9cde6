// Package legs keeps what the storms came to. The long form goes in legs, each
// with a world and a seed of its own; each leaves a line of JSON in a log. What
// stands there is not done again, so that the long form can be run in parts,
// and the report is made of it.
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

// Leg is what one world went through.
type Leg struct {
	Storm  string `json:"storm"`
	Engine string `json:"engine"`
	// Commit names what was built, "" when nobody said.
	Commit  string    `json:"commit,omitempty"`
	Seed    uint64    `json:"seed"`
	Began   time.Time `json:"began"`
	Seconds float64   `json:"seconds"`
	// Counts are by what was counted, in words.
	Counts map[string]int `json:"counts"`
	// Points are the failpoints that ended a process, with how often.
	Points map[string]int `json:"points,omitempty"`
	// Failed tells that an invariant was broken, or that the storm did not
	// reach what it has to reach.
	Failed bool `json:"failed"`
}

// Read returns the legs of a log. One that is not there has none.
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

// Append adds a leg to a log, and makes the log.
func Append(path string, l *Leg) error {
	line, err := json.Marshal(l)
	if err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(append(line, '\n')) // in one piece, beside others who append
	return errors.Join(err, f.Close())
}

// Sum adds up what the legs of a storm that held have counted of a unit. "" is
// any storm, or any engine.
func Sum(all []*Leg, storm, engine, unit string) (n int) {
	for _, l := range all {
		if (storm == "" || l.Storm == storm) && (engine == "" || l.Engine == engine) && !l.Failed {
			n += l.Counts[unit]
		}
	}
	return n
}
