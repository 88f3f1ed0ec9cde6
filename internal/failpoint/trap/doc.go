// Package trap makes the program that imports it kill itself at a failpoint. The environment names a place and a
// number n, and the process sends itself SIGKILL when it reaches the place for the nth time:
//
//	GATEHOUSE_FAILPOINT=decide/voted:3
//
// means the third time, counted over all goroutines. Nothing of the process runs after it: no deferred call, no
// answer, no flush. Only the program that the crash tests build imports the package.
package trap
