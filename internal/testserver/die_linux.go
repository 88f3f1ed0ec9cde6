package testserver

import "syscall"

// dieWithParent makes the kernel stop the server when the test process is killed.
func dieWithParent(attr *syscall.SysProcAttr) { attr.Pdeathsig = syscall.SIGQUIT }
