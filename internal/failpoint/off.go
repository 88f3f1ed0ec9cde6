//go:build !failpoint

package failpoint

// Here is nothing in this build.
func Here(string) {}
