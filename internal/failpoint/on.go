//go:build failpoint

package failpoint

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
)

// Environment is the name of the environment variable that selects a place.
const Environment = "GATEHOUSE_FAILPOINT"

type trap struct {
	name string
	// left is how many times the place must still be reached.
	left atomic.Int64
}

var armed = sync.OnceValue(func() *trap {
	value := os.Getenv(Environment)
	if value == "" {
		return nil
	}
	name, nth, _ := strings.Cut(value, ":")
	n, err := strconv.ParseInt(nth, 10, 64)
	if err != nil || n < 1 {
		fmt.Fprintf(os.Stderr, "%s=%s: it must be name:n with n of at least 1\n", Environment, value)
		os.Exit(2)
	}
	t := &trap{name: name}
	t.left.Store(n)
	return t
})

// Here kills the process when it reaches the selected place for the nth time.
func Here(name string) {
	t := armed()
	if t == nil || t.name != name || t.left.Add(-1) != 0 {
		return
	}
	_ = syscall.Kill(syscall.Getpid(), syscall.SIGKILL)
	select {} // wait for the signal
}
