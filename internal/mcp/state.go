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
)

// Folder keeps what a proxy knows over restarts: the pins of its server, and which
// outcomes its clients have not received. Losing it makes the server's tools pinned
// anew, and an equal call a new action.
type Folder struct {
	dir string
	mu  sync.Mutex
	// calls is by the hash of a call.
	calls map[string]callState
	// order lists the hashes, the oldest first.
	order []string
}

// callState is where the chain of equal calls stands: see join.
type callState struct {
	// Last is the last action whose outcome a client has received.
	Last string `json:"last,omitempty"`
	// Open is the action that equal calls join, "" for none.
	Open string `json:"open,omitempty"`
}

// maxCalls bounds how many calls are remembered.
const maxCalls = 10_000

// callsFile is a journal: each line is a call's new state, and the last one holds.
const callsFile = "calls.jsonl"

// OpenFolder opens the folder, and makes it when needed. Only its owner may read it.
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
		// A line that a crash has cut off is as if it had not been written.
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

// put keeps the newest calls in memory.
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

// replace writes a file as a whole. Of two proxies that do so at the same time, one's
// stays.
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

// open remembers that equal calls join an action.
func (f *Folder) open(hash, action string) error {
	return f.change(hash, func(c *callState) { c.Open = action })
}

// consume remembers that a client has received the outcome of an action. past says that
// an equal call is another action from now on.
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

// hashOf returns the call whose open action it is, "" for none.
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

// change appends to the journal without a sync: it outlives the process, and a crash of
// the machine may lose it.
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
