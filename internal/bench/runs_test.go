package bench

import (
	"testing"

	"github.com/gatehouse-dev/gatehouse/internal/workflow"
)

// TestRunSources: the sources that are stored without the use case are valid workflows.
func TestRunSources(t *testing.T) {
	t.Parallel()
	for name, source := range map[string]string{
		"line": lineSource(lineSteps), "parked": parkedSource, "triage": triageSource,
	} {
		d, err := workflow.Parse([]byte(source))
		if err != nil {
			t.Errorf("%s: %v", name, err)
		} else if d.Name != name {
			t.Errorf("%s is called %s", name, d.Name)
		}
	}
	if d, err := workflow.Parse([]byte(lineSource(lineSteps))); err != nil || len(d.Steps) != lineSteps {
		t.Errorf("the line has not %d steps: %v", lineSteps, err)
	}
}

// TestBareSteps: the bare side executes all steps, and reports when none are left.
func TestBareSteps(t *testing.T) {
	t.Parallel()
	s, err := (&liteDatabases{dir: t.TempDir()}).steps(t.Context(), 16)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	if err := s.Store(t.Context(), 3*lineSteps); err != nil {
		t.Fatal(err)
	}
	if took, err := s.Carry(t.Context(), 3*lineSteps); err != nil || took <= 0 {
		t.Errorf("%v, %v", took, err)
	}
	if _, err := s.Carry(t.Context(), 1); err != errNoSteps { //nolint:errorlint // it is returned as it is
		t.Errorf("one step too many: %v", err)
	}
	db := s.(*liteSteps).db
	for query, want := range map[string]int{
		`SELECT count(*) FROM run WHERE status = 'succeeded'`:  3,
		`SELECT count(*) FROM step WHERE status = 'succeeded'`: 3 * lineSteps,
		`SELECT count(*) FROM step_attempt`:                    3 * lineSteps,
		`SELECT count(*) FROM audit_leaf`:                      3*lineSteps + 3,
	} {
		var got int
		if err := db.QueryRowContext(t.Context(), query).Scan(&got); err != nil || got != want {
			t.Errorf("%s: %d, %v, want %d", query, got, err, want)
		}
	}
}
