// Package github changes repositories by GitHub's REST API (https://docs.github.com/en/rest,
// version 2022-11-28).
//
// GitHub's behaviour determines each operation's class. Adding or removing one label is idempotent:
// class A. A merge names the head commit, and a release names the commit of a tag that can have
// only one release: class B. Sending a comment or the start of a workflow again repeats it: class
// C, as are deletions and the canceling of a run. To be found after a lost answer, comments and
// releases contain the action's id as an HTML comment; what is found is compared with what was
// approved. A run receives the id as an input, if action_input names one, and is found if the
// workflow's run-name contains that input.
package github
