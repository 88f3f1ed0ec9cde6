package runs_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/gatehouse-dev/gatehouse"
)

// BenchmarkForEach runs for_each steps from the start of the run to its end.
// The cost of an item must not grow with the number of items.
func BenchmarkForEach(b *testing.B) {
	for name, open := range engines {
		for _, size := range []struct{ steps, items int }{{1, 100}, {1, 1000}, {5, 998}} {
			b.Run(fmt.Sprintf("%s/%d", name, size.steps*size.items), func(b *testing.B) {
				store, err := open(b)
				if err != nil {
					b.Fatal(err)
				}
				w := newWorld(b, store)
				source := "name: wide\nsteps:\n"
				for i := range size.steps {
					source += fmt.Sprintf(
						"  - {id: s%d, needs: [], uses: transform, for_each: input.items, max_items: 1000, with: {n: \"${{ item }}\"}}\n",
						i)
				}
				w.apply("wide", source)
				input := gatehouse.JSON(`{"items":[` + strings.Repeat("1,", size.items-1) + `1]}`)
				for b.Loop() {
					run := w.start("wide", input)
					for !run.Status.Final() {
						time.Sleep(5 * time.Millisecond)
						w.must(store.View(b.Context(), gatehouse.DefaultTenant, func(tx gatehouse.ReadTx) error {
							page, err := tx.ListRuns(gatehouse.RunFilter{Limit: 1})
							if err == nil {
								run = page.Items[0]
							}
							return err
						}))
					}
					if run.Status != gatehouse.RunSucceeded {
						b.Fatalf("the run is %s", run.Status)
					}
				}
				b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N*size.steps*size.items), "µs/item")
			})
		}
	}
}
