// Package workflow is the YAML form of workflows: it reads a source strictly,
// knows the graph of its steps, evaluates their conditions and templates, says
// what is ready, tests a workflow against recorded answers, and draws it.
// docs/workflows.md is the manual.
//
// It is pure: no clock, no input or output. [Parse] compiles every expression
// once; a [Definition] never changes and is safe for concurrent use.
//
// It fails closed. A path that is not there is an error and not null, a number
// never passes through a float, a step reads only steps that it needs, and
// every expression, list and output has a bound.
package workflow
