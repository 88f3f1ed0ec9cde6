//go:build !linux

package proof

import "syscall"

func withParent() *syscall.SysProcAttr { return nil }
