//go:build !failpoint

package failpoint

// Here does nothing in this build.
func Here(string) {}
