package expr_test

import (
	"sync"
	"testing"

	"cel.dev/cel-go/cel"

	"github.com/gatehouse-dev/gatehouse/internal/expr"
)

// TestCompileTogether compiles valid and invalid expressions concurrently, for
// the race detector.
func TestCompileTogether(t *testing.T) {
	t.Parallel()
	for range 20 {
		l, err := expr.New(expr.Config{Facts: []expr.Fact{{Name: "list", Type: cel.ListType(cel.IntType)}}, Cost: 1000})
		if err != nil {
			t.Fatal(err)
		}
		var work sync.WaitGroup
		for _, source := range []string{
			`lis.exists(x, x > 1)`, `list.exists(x, x > 1)`, `nothing + 1`, `list.all(x, x > 1)`,
		} {
			work.Go(func() { l.Compile(source, nil, nil) })
		}
		work.Wait()
	}
}
