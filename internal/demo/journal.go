package demo

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/gatehouse-dev/gatehouse"
)

// The kinds of journal entry.
const (
	// kindDecision: a reviewer decided, or the gate refused the decision.
	kindDecision = "decision"
	// kindAllowed: the policy allowed a change by the agent.
	kindAllowed = "allowed"
	// kindOutside: a clerk wrote to the ledger directly.
	kindOutside = "outside"
)

// entry is one line of the journal, written by whoever decided on the change or caused it.
type entry struct {
	At       time.Time              `json:"at"`
	By       string                 `json:"by"`
	Kind     string                 `json:"kind"`
	Decision gatehouse.DecisionKind `json:"decision,omitempty"`
	// Answer is the gate's answer: decided, vote_recorded, or an error code.
	Answer   string           `json:"answer,omitempty"`
	ActionID string           `json:"action_id,omitempty"`
	Digest   gatehouse.Digest `json:"digest,omitempty"`
	// The exact change, as it was seen.
	Connector string           `json:"connector,omitempty"`
	Operation string           `json:"operation"`
	Target    gatehouse.Target `json:"target"`
	Before    gatehouse.JSON   `json:"before,omitempty"`
	Change    gatehouse.JSON   `json:"change"`
}

// stands reports whether the entry's change must be in the ledger.
func (e *entry) stands() bool {
	switch e.Kind {
	case kindAllowed, kindOutside:
		return true
	case kindDecision:
		return e.Decision == gatehouse.Approve && e.Answer == gatehouse.Decided
	}
	return false
}

// journal is a file with one JSON object per line. It may be written concurrently.
type journal struct {
	mu   sync.Mutex
	file *os.File
}

func newJournal(path string) (*journal, error) {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, err
	}
	return &journal{file: f}, nil
}

func (j *journal) write(e entry) error {
	e.At = time.Now().UTC().Round(0)
	line, err := json.Marshal(e)
	if err != nil {
		return err
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	_, err = j.file.Write(append(line, '\n'))
	return err
}

func (j *journal) Close() error { return j.file.Close() }

// readJournal reads the file, so that the check uses what is on disk.
func readJournal(path string) ([]entry, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var all []entry
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	for n := 1; lines.Scan(); n++ {
		var e entry
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			return nil, fmt.Errorf("%s:%d: %w", path, n, err)
		}
		all = append(all, e)
	}
	return all, lines.Err()
}
