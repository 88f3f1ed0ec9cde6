package connector_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"sync"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/connector"
)

// Flags switches feature flags: one JSON file each, in a folder that only this
// process writes.
type Flags struct {
	dir string
	mu  sync.Mutex
}

// flag is one file. Applied holds the calls that produced its state, so that one
// rename writes both the record and the change.
type flag struct {
	Version int                         `json:"version"`
	On      bool                        `json:"on"`
	Applied map[string]gatehouse.Digest `json:"applied"`
}

func (f *Flags) Fingerprint() string {
	sum := sha256.Sum256([]byte("flags\x00" + f.dir))
	return hex.EncodeToString(sum[:])
}

// Operation: switch is of class A, since each file stores its keys.
func (f *Flags) Operation(name string) (connector.Operation, bool) {
	return connector.Operation{Name: name, Class: connector.ClassA, Floor: gatehouse.L2, Reverses: true}, name == "switch"
}

var flagName = regexp.MustCompile(`^[a-z0-9-]{1,64}$`) // cannot leave the folder

func (f *Flags) Validate(c connector.Call) error {
	var v gatehouse.Violations
	if c.Operation != "switch" {
		v.Add("/operation", "must be switch")
	}
	if !flagName.MatchString(c.Target.EntityRef) {
		v.Add("/target/entity_ref", "must be the name of a flag")
	}
	if c.Target.Version == "" {
		v.Add("/target/version", "is required, so that nothing is overwritten")
	}
	if c.ProposedChange != `{"on":true}` && c.ProposedChange != `{"on":false}` {
		v.Add("/proposed_change", `must be {"on": true} or {"on": false}`)
	}
	return v.Err()
}

func (f *Flags) path(c connector.Call) string {
	return filepath.Join(f.dir, c.Target.EntityRef+".json")
}

func (f *Flags) read(c connector.Call) (flag, error) {
	var state flag
	b, err := os.ReadFile(f.path(c))
	if err == nil {
		err = json.Unmarshal(b, &state)
	}
	return state, err
}

func key(c connector.Call) string { return c.Tenant + " " + c.IdempotencyKey }

func (f *Flags) Execute(ctx context.Context, c connector.Call) (connector.Result, error) {
	if err := f.Validate(c); err != nil {
		return connector.Result{}, &connector.Error{Kind: connector.Terminal, Code: "invalid", Detail: err.Error()}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if ctx.Err() != nil { // nothing has been touched yet
		return connector.Result{}, &connector.Error{Kind: connector.NotSent, Code: "timeout", Detail: "the time ran out"}
	}
	state, err := f.read(c)
	switch digest, done := state.Applied[key(c)]; {
	case errors.Is(err, fs.ErrNotExist):
		return connector.Result{},
			&connector.Error{Kind: connector.Terminal, Code: "target_changed", Detail: "there is no such flag"}
	case err != nil:
		return connector.Result{},
			&connector.Error{Kind: connector.NotSent, Code: "unreachable", Detail: "the flag cannot be read", Err: err}
	case done && digest == c.Digest:
		return result(c, state), nil // answered before; the answer was lost
	case done:
		return connector.Result{},
			&connector.Error{Kind: connector.Terminal, Code: "idempotency_conflict", Detail: "the key has made another change"}
	case strconv.Itoa(state.Version) != c.Target.Version:
		return connector.Result{},
			&connector.Error{Kind: connector.Terminal, Code: "target_changed", Detail: "the flag has another version"}
	}
	if state.Applied == nil {
		state.Applied = make(map[string]gatehouse.Digest)
	}
	state.Version, state.On, state.Applied[key(c)] = state.Version+1, c.ProposedChange == `{"on":true}`, c.Digest
	b, err := json.Marshal(state)
	if err == nil {
		err = os.WriteFile(f.path(c)+".new", b, 0o600)
	}
	if err != nil { // the flag itself is as it was: proven
		return connector.Result{},
			&connector.Error{Kind: connector.Transient, Code: "storage", Detail: "the flag cannot be written", Err: err}
	}
	if err := os.Rename(f.path(c)+".new", f.path(c)); err != nil { // the file may or may not be renamed
		return connector.Result{},
			&connector.Error{Kind: connector.Ambiguous, Code: "storage", Detail: "the flag may or may not be switched", Err: err}
	}
	return result(c, state), nil
}

func result(c connector.Call, state flag) connector.Result {
	back := c.Target
	back.Version = strconv.Itoa(state.Version)
	was := gatehouse.JSON(`{"on":true}`)
	if c.ProposedChange == was {
		was = `{"on":false}`
	}
	return connector.Result{
		ExternalID:       c.Target.EntityRef,
		ResponseMetadata: gatehouse.MustJSON(map[string]int{"version": state.Version}),
		Reversal: &gatehouse.Reversal{
			Operation: "switch", Target: back, CurrentState: c.ProposedChange, ProposedChange: was,
		},
	}
}

func (f *Flags) Check(_ context.Context, c connector.Call) (connector.State, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	state, err := f.read(c)
	if err != nil {
		return connector.State{},
			&connector.Error{Kind: connector.Transient, Code: "unreachable", Detail: "the flag cannot be read", Err: err}
	}
	actual := strconv.Itoa(state.Version)
	return connector.State{
		Matches:  c.Target.Version == "" || actual == c.Target.Version,
		Expected: gatehouse.StringJSON(c.Target.Version), Actual: gatehouse.StringJSON(actual),
	}, nil
}

func (f *Flags) ReadBack(_ context.Context, c connector.Call) (connector.Finding, connector.Result, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	state, err := f.read(c)
	if err != nil {
		return connector.Inconclusive, connector.Result{},
			&connector.Error{Kind: connector.Transient, Code: "unreachable", Detail: "the flag cannot be read", Err: err}
	}
	if state.Applied[key(c)] != c.Digest {
		return connector.Inconclusive, connector.Result{}, nil // an earlier call may still be on its way
	}
	return connector.Present, result(c, state), nil
}
