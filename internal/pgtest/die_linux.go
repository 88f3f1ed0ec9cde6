package pgtest

import "syscall"

// dieWithParent has the server stopped when the test process is killed.
func dieWithParent(attr *syscall.SysProcAttr) { attr.Pdeathsig = syscall.SIGQUIT }
