//go:build !linux

package postgres

import "syscall"

// boundUnanswered leaves it to the system how long it sends again what is not
// acknowledged.
func boundUnanswered(string, string, syscall.RawConn) error { return nil }
