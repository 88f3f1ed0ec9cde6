package proof

import "syscall"

// withParent ends a server when the test process ends without stopping it.
func withParent() *syscall.SysProcAttr { return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }
