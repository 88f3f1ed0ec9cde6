//go:build unix

package trap

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"

	"github.com/gatehouse-dev/gatehouse/internal/failpoint"
)

// environment is the name of the environment variable that selects a place.
const environment = "GATEHOUSE_FAILPOINT"

func init() {
	value := os.Getenv(environment)
	if value == "" {
		return
	}
	place, nth, _ := strings.Cut(value, ":")
	n, err := strconv.ParseInt(nth, 10, 64)
	if err != nil || n < 1 {
		fmt.Fprintf(os.Stderr, "%s=%s: it must be name:n with n of at least 1\n", environment, value)
		os.Exit(2)
	}
	var left atomic.Int64 // how many times the place must still be reached
	left.Store(n)
	failpoint.Catch(func(name string) {
		if name != place || left.Add(-1) != 0 {
			return
		}
		_ = syscall.Kill(syscall.Getpid(), syscall.SIGKILL)
		select {} // wait for the signal
	})
}
