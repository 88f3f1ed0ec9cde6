// Package github changes repositories by GitHub's REST API
// (https://docs.github.com/en/rest, version 2022-11-28).
//
// Each operation has the class that GitHub's own behaviour gives it. Adding or
// removing one label is idempotent: class A. A merge names the head commit, and a
// release the commit of a tag that can have one release: class B. A comment and
// the start of a workflow are repeated when they are sent again: class C. Comments
// and releases carry the action's id as an HTML comment, runs as an input, by
// which they are found after a lost answer.
package github
