package rest

import (
	"context"
	"sync"
	"time"

	"github.com/gatehouse-dev/gatehouse/connector"
)

// Keyed is a set of named locks within this process. The zero value is ready to use.
type Keyed struct {
	mu   sync.Mutex
	held map[string]chan struct{} // closed when the holder unlocks
}

// Lock waits for the lock of a name, or for the end of ctx. It returns the function that unlocks,
// or nil when ctx ended first.
func (k *Keyed) Lock(ctx context.Context, name string) (unlock func()) {
	for {
		k.mu.Lock()
		wait, taken := k.held[name]
		if !taken {
			if k.held == nil {
				k.held = make(map[string]chan struct{})
			}
			mine := make(chan struct{})
			k.held[name] = mine
			k.mu.Unlock()
			return func() {
				k.mu.Lock()
				delete(k.held, name)
				k.mu.Unlock()
				close(mine)
			}
		}
		k.mu.Unlock()
		select {
		case <-wait:
		case <-ctx.Done():
			return nil
		}
	}
}

// Execute validates a call, locks name, and executes the call with do. timeout limits the wait for the
// lock and do together.
func (k *Keyed) Execute(
	ctx context.Context, c connector.Validator, call connector.Call, timeout time.Duration, name string,
	do func(context.Context, connector.Call) (connector.Result, *connector.Error),
) (connector.Result, error) {
	if err := c.Validate(call); err != nil {
		return connector.Result{}, Invalid(err)
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	unlock := k.Lock(ctx, name)
	if unlock == nil {
		return connector.Result{}, NotSent("timeout", "the time ran out before the call's turn came")
	}
	defer unlock()
	res, failed := do(ctx, call)
	if failed != nil {
		return res, failed
	}
	return res, nil
}
