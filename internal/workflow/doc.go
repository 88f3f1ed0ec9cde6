// Package workflow implements the YAML form of workflows. It parses a source
// strictly, builds the graph of its steps, evaluates conditions and templates,
// finds the ready steps, tests a workflow against recorded answers, and draws
// it. docs/workflows.md is the manual.
//
// The package has no clock, and no I/O except that [ParseCron] may read the zone
// database. [Parse] compiles every expression once; a [Definition] never changes and
// is safe for concurrent use.
//
// It fails closed. A missing path is an error, not null. A number never passes
// through a float. A step reads only steps that it needs, and the rejection of a step
// that repeats it. Every expression, list and output has a bound.
package workflow
