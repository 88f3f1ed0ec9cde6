package storetest

import (
	"slices"
	"testing"
	"time"

	"github.com/gatehouse-dev/gatehouse"
)

// BenchmarkSearch indexes the actions of the default tenant, and compares searches
// with scan, which searches every rationale for a text that none has. Action number n has the
// key "key-n" and the rationale "supplier raised cost".
func BenchmarkSearch(b *testing.B, s gatehouse.Store, scan func() error) {
	measure := func(name string, fn func() error) {
		b.Run(name, func(b *testing.B) {
			var took []time.Duration
			for b.Loop() {
				began := time.Now()
				if err := fn(); err != nil {
					b.Fatal(err)
				}
				took = append(took, time.Since(began))
			}
			slices.Sort(took)
			b.ReportMetric(took[len(took)/2].Seconds()*1000, "p50-ms")
			b.ReportMetric(took[len(took)*99/100].Seconds()*1000, "p99-ms")
		})
	}
	blocks, deadline := 0, time.Now().Add(10*time.Second)
	began := time.Now()
	for {
		var block *gatehouse.SearchBlock
		err := s.ViewQueues(b.Context(), func(q gatehouse.ReadQueues) (err error) {
			block, err = q.NextSearchBlock()
			return err
		})
		if err == nil && block != nil {
			err = s.UpdateQueues(b.Context(), func(q gatehouse.Queues) error { return q.PutSearchBlock(block) })
			blocks++
		}
		if err != nil {
			b.Fatal(err)
		}
		if block == nil && (blocks > 0 || time.Now().After(deadline)) {
			break
		}
	}
	b.Logf("%d blocks were indexed in %v", blocks, time.Since(began))
	measure("scan", scan)
	for _, c := range []struct {
		name string
		f    gatehouse.ActionFilter
	}{
		{"one", gatehouse.ActionFilter{Query: "key-77777"}},
		{"none", gatehouse.ActionFilter{Query: "nothing of the kind"}},
		{"common", gatehouse.ActionFilter{Query: "supplier cost"}},
		{"letter", gatehouse.ActionFilter{Query: "s"}},
		{"prefix", gatehouse.ActionFilter{Query: "supplier key-777"}},
		{"status", gatehouse.ActionFilter{Query: "key-777", Status: gatehouse.StatusApplied}},
		{"urgency", gatehouse.ActionFilter{Query: "key-777", Sort: gatehouse.SortUrgency}},
	} {
		measure(c.name, func() error {
			return s.View(b.Context(), gatehouse.DefaultTenant, func(tx gatehouse.ReadTx) error {
				_, err := tx.ListActions(c.f)
				return err
			})
		})
	}
}
