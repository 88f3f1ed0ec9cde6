//go:build !linux

package pgtest

import "syscall"

// dieWithParent cannot be had here: a killed test process leaves its server.
func dieWithParent(*syscall.SysProcAttr) {}
