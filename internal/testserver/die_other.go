//go:build !linux

package testserver

import "syscall"

// dieWithParent does nothing on this system: a killed test process leaves its server running.
func dieWithParent(*syscall.SysProcAttr) {}
