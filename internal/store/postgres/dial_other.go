//go:build !linux

package postgres

import "syscall"

// setUserTimeout keeps the system's default for retransmissions.
func setUserTimeout(string, string, syscall.RawConn) error { return nil }
