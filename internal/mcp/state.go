package mcp

import (
	"bytes"
	linked "container/list"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/filelock"
)

// Folder stores the state of a proxy or hook across restarts: the pins of the server, which
// outcomes no client has received yet, the key that signs rounds and tasks, the used rounds, and
// the released calls of a hook. If the folder is lost, the server's tools are pinned again, and of the
// finished actions, only an unknown one and a rejection that still holds answer the next equal call.
type Folder struct {
	dir string
	mu  sync.Mutex
	// calls holds each call's element of order, by the hash of the call.
	calls map[string]*linked.Element
	// order holds a storedCall for each call; the one that changed last is at the end.
	order *linked.List
	// lines is the approximate number of lines in the journal.
	lines int
	// swept is when used rounds were last removed.
	swept time.Time
	// deliveries holds the outcomes that clients are being answered with, by action.
	deliveries map[string]*delivery
}

// callState is the state of a chain of equal calls; see join.
type callState struct {
	// Last is the last action whose outcome a client has received.
	Last string `json:"last,omitempty"`
	// Open is the action that equal calls join, "" for none.
	Open string `json:"open,omitempty"`
	// Lost is the idempotency key of a proposal that the gate did not answer, "" for none. Its action,
	// if there is one, answers the next equal call.
	Lost string `json:"lost,omitempty"`
}

// maxCalls bounds how many calls are remembered.
const maxCalls = 10_000

// callsFile is a journal: each line is a call's new state, and a call's last
// line is valid. A line feed is also written before each line, so that a line
// after a truncated line can be read.
const callsFile = "calls.jsonl"

// OpenFolder opens the folder and creates it if needed. Only its owner may read
// it.
func OpenFolder(dir string) (*Folder, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	f := &Folder{dir: dir, calls: map[string]*linked.Element{}, order: linked.New()}
	return f, f.locked(f.load)
}

// locked excludes the other proxies of the folder while it calls do.
func (f *Folder) locked(do func() error) error {
	lock, err := os.OpenFile(f.path("lock"), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	defer lock.Close()
	if err := filelock.Lock(lock); err != nil {
		return fmt.Errorf("lock %s: %w", lock.Name(), err)
	}
	return do()
}

// load reads the journal. If it is long, load replaces it by the calls that are remembered. The folder is locked.
func (f *Folder) load() error {
	b, err := os.ReadFile(f.path(callsFile))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	f.lines = 0
	for line := range bytes.Lines(b) {
		var c storedCall
		// A line truncated by a crash or a full disk counts as not written.
		if json.Unmarshal(line, &c) == nil {
			f.put(c)
			f.lines++
		}
	}
	if f.lines <= 2*maxCalls {
		return nil
	}
	var short bytes.Buffer
	for e := f.order.Front(); e != nil; e = e.Next() {
		_ = json.NewEncoder(&short).Encode(e.Value) // strings always encode
	}
	f.lines = f.order.Len()
	return f.replace(callsFile, short.Bytes())
}

func (f *Folder) path(name string) string { return filepath.Join(f.dir, name) }

type storedCall struct {
	Hash string `json:"hash"`
	callState
}

// put keeps a call in memory. Above maxCalls, it forgets the call that has not changed for the longest time.
func (f *Folder) put(c storedCall) {
	if e, known := f.calls[c.Hash]; known {
		e.Value = c
		f.order.MoveToBack(e)
		return
	}
	f.calls[c.Hash] = f.order.PushBack(c)
	if f.order.Len() > maxCalls {
		oldest, _ := f.order.Remove(f.order.Front()).(storedCall)
		delete(f.calls, oldest.Hash)
	}
}

// get returns the state of a call. f.mu is held.
func (f *Folder) get(hash string) callState {
	e, known := f.calls[hash]
	if !known {
		return callState{}
	}
	c, _ := e.Value.(storedCall)
	return c.callState
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

// replace writes a whole file atomically.
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

// pinsOr returns the pinned catalogue. If there is none, it pins the catalogue
// found, and returns it with first set.
func (f *Folder) pinsOr(found *catalogue) (pinned *catalogue, first bool, err error) {
	err = f.locked(func() (err error) {
		if pinned, err = f.pins(); errors.Is(err, errAbsent) {
			pinned, first = found, true
			return f.setPins(found)
		}
		return err
	})
	return pinned, first, err
}

// repin changes the pinned catalogue if it still is the given version.
func (f *Folder) repin(version string, changes []gatehouse.Member) error {
	return f.locked(func() error {
		pinned, err := f.pins()
		if err != nil {
			return err
		}
		if catalogueHash(pinned) != version {
			return errPinsMoved
		}
		for _, m := range changes {
			pinned.apply(m.Name, m.Value)
		}
		return f.setPins(pinned)
	})
}

// setPins replaces the pinned catalogue. The folder is locked.
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
	return f.get(hash)
}

// open records that equal calls join an action.
func (f *Folder) open(hash, action string) error {
	return f.change(hash, func(c *callState) { c.Open, c.Lost = action, "" })
}

// lose records that the gate did not answer a proposal.
func (f *Folder) lose(hash, idempotencyKey string) error {
	return f.change(hash, func(c *callState) { c.Lost = idempotencyKey })
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

// restore undoes consume: the client has not received the outcome after all. before is the state before consume. If
// an equal call has become a new action since, restore changes nothing.
func (f *Folder) restore(hash, action string, before callState) error {
	return f.change(hash, func(c *callState) {
		if c.Last == action && (c.Open == "" || c.Open == before.Open) {
			c.Last, c.Open = before.Last, action
		}
	})
}

// hashOf returns the hash of the call whose open action this is, "" for none.
func (f *Folder) hashOf(action string) string {
	f.mu.Lock()
	defer f.mu.Unlock()
	for hash := range f.calls {
		if f.get(hash).Open == action {
			return hash
		}
	}
	return ""
}

// change edits the state of a call and appends the new state to the journal,
// without a sync: the line survives the process, but may not survive a crash of
// the machine.
func (f *Folder) change(hash string, edit func(*callState)) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	c := storedCall{hash, f.get(hash)}
	before := c
	if edit(&c.callState); c == before {
		return nil
	}
	f.put(c)
	b, err := json.Marshal(c)
	if err != nil {
		return err
	}
	return f.locked(func() error {
		journal, err := os.OpenFile(f.path(callsFile), os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
		if err != nil {
			return err
		}
		_, err = fmt.Fprintf(journal, "\n%s\n", b)
		if err = errors.Join(err, journal.Close()); err != nil {
			return err
		}
		if f.lines++; f.lines > 2*maxCalls {
			return f.load()
		}
		return nil
	})
}
