//go:build !unix

package bench

import "time"

// cpuTime is not available here, so the lines that need it are left out.
func cpuTime() time.Duration { return 0 }
