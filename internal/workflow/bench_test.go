package workflow_test

import (
	"os"
	"testing"

	"github.com/gatehouse-dev/gatehouse/internal/workflow"
)

// BenchmarkParse parses a workflow of five steps.
func BenchmarkParse(b *testing.B) {
	source, err := os.ReadFile("testdata/triage.yaml")
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if _, err := workflow.Parse(source); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkTemplate evaluates a `with` of three expressions.
func BenchmarkTemplate(b *testing.B) {
	with := made(b, `{a: "x ${{ input.x }}", b: "${{ steps.before.output.y }}", c: "${{ input.n * 2 }}"}`)
	s := scope(`{"n":10.10,"x":"y"}`, `{"y":[1,2]}`)
	for b.Loop() {
		if _, err := with.Eval(s); err != nil {
			b.Fatal(err)
		}
	}
}
