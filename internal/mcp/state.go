package mcp

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"
)

// Folder stores a proxy's state across restarts: the pins of its server, and
// which outcomes no client has received yet. If it is lost, the server's tools
// are pinned again, and finished actions do not answer equal calls any more.
// (A rejection that still holds does.)
type Folder struct {
	dir string
	// pinning is held by the proxy that pins the first tools.
	pinning sync.Mutex
	mu      sync.Mutex
	// calls is keyed by the hash of a call.
	calls map[string]callState
	// order lists the hashes, oldest first.
	order []string
	// swept is when used rounds were last removed.
	swept time.Time
}

// callState is the position in the chain of equal calls: see join.
type callState struct {
	// Last is the last action whose outcome a client has received.
	Last string `json:"last,omitempty"`
	// Open is the action that equal calls join, "" for none.
	Open string `json:"open,omitempty"`
}

// maxCalls bounds how many calls are remembered.
const maxCalls = 10_000

// callsFile is a journal: each line is a call's new state, and a call's last
// line is valid.
const callsFile = "calls.jsonl"

// OpenFolder opens the folder and creates it if needed. Only its owner may read
// it.
func OpenFolder(dir string) (*Folder, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	f := &Folder{dir: dir, calls: map[string]callState{}}
	b, err := os.ReadFile(f.path(callsFile))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	count := 0
	for line := range bytes.Lines(b) {
		var c storedCall
		// A line truncated by a crash counts as not written, with the line that was
		// appended to it later.
		if json.Unmarshal(line, &c) == nil {
			f.put(c.Hash, c.callState)
			count++
		}
	}
	if count > 2*maxCalls {
		var short bytes.Buffer
		for _, hash := range f.order {
			_ = json.NewEncoder(&short).Encode(storedCall{hash, f.calls[hash]}) // strings always encode
		}
		return f, f.replace(callsFile, short.Bytes())
	}
	return f, nil
}

func (f *Folder) path(name string) string { return filepath.Join(f.dir, name) }

type storedCall struct {
	Hash string `json:"hash"`
	callState
}

// put keeps a call in memory. Above maxCalls, it forgets the call that was added first.
func (f *Folder) put(hash string, c callState) {
	if _, known := f.calls[hash]; !known {
		f.order = append(f.order, hash)
		if len(f.order) > maxCalls {
			delete(f.calls, f.order[0])
			f.order = f.order[1:]
		}
	}
	f.calls[hash] = c
}

func (f *Folder) read(name string, into any) error {
	b, err := os.ReadFile(f.path(name))
	if err != nil {
		return err
	}
	if err := json.Unmarshal(b, into); err != nil {
		return fmt.Errorf("%s: %w", f.path(name), err)
	}
	return nil
}

// replace writes a whole file atomically. If two proxies do so at the same
// time, the later file stays.
func (f *Folder) replace(name string, content []byte) error {
	temp, err := os.CreateTemp(f.dir, name+".*")
	if err != nil {
		return err
	}
	defer os.Remove(temp.Name())
	_, err = temp.Write(content)
	if err := errors.Join(err, temp.Sync(), temp.Close()); err != nil {
		return err
	}
	return os.Rename(temp.Name(), f.path(name))
}

// pins returns the pinned catalogue; errAbsent when there is none.
func (f *Folder) pins() (*catalogue, error) {
	c := &catalogue{}
	err := f.read("pins.json", c)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, errAbsent
	}
	return c, err
}

// pinsOr returns the pinned catalogue, or pins found when there is none.
func (f *Folder) pinsOr(found *catalogue) (pinned *catalogue, first bool, err error) {
	f.pinning.Lock()
	defer f.pinning.Unlock()
	pinned, err = f.pins()
	if errors.Is(err, errAbsent) {
		return found, true, f.setPins(found)
	}
	return pinned, false, err
}

func (f *Folder) setPins(c *catalogue) error {
	b, err := json.MarshalIndent(c, "", "  ")
	if err != nil {
		return err
	}
	return f.replace("pins.json", append(b, '\n'))
}

func (f *Folder) call(hash string) callState {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.calls[hash]
}

// open records that equal calls join an action.
func (f *Folder) open(hash, action string) error {
	return f.change(hash, func(c *callState) { c.Open = action })
}

// consume records that a client has received the outcome of an action. If past
// is true, the next equal call becomes a new action.
func (f *Folder) consume(hash, action string, past bool) error {
	return f.change(hash, func(c *callState) {
		if past {
			c.Last = action
		}
		if c.Open == action {
			c.Open = ""
		}
	})
}

// hashOf returns the hash of the call whose open action this is, "" for none.
func (f *Folder) hashOf(action string) string {
	f.mu.Lock()
	defer f.mu.Unlock()
	for hash, c := range f.calls {
		if c.Open == action {
			return hash
		}
	}
	return ""
}

// change appends to the journal without a sync: the line survives the process,
// but may not survive a crash of the machine.
func (f *Folder) change(hash string, edit func(*callState)) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	c := f.calls[hash]
	before := c
	if edit(&c); c == before {
		return nil
	}
	f.put(hash, c)
	b, err := json.Marshal(storedCall{hash, c})
	if err != nil {
		return err
	}
	journal, err := os.OpenFile(f.path(callsFile), os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	_, err = journal.Write(append(b, '\n'))
	return errors.Join(err, journal.Close())
}
