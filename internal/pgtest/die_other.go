//go:build !linux

package pgtest

import "syscall"

// dieWithParent does nothing on this system: a killed test process leaves its server running.
func dieWithParent(*syscall.SysProcAttr) {}
