package sqlite

import (
	"context"
	"flag"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/gatehouse-dev/gatehouse"
)

var searchRows = flag.Int("search", 200_000, "actions in BenchmarkSearch; a tenth of them is pending")

// BenchmarkSearch searches before and after the actions are indexed.
func BenchmarkSearch(b *testing.B) {
	s := openTest(b, Config{})
	populate(b, s, *searchRows, 10, "60 + i * 7907 % 260000")
	ctx := context.Background()
	queries := []struct {
		name string
		f    gatehouse.ActionFilter
	}{
		{"one", gatehouse.ActionFilter{Query: fmt.Sprintf("key-%d", *searchRows/3)}},
		{"none", gatehouse.ActionFilter{Query: "nothing of the kind"}},
		{"common", gatehouse.ActionFilter{Query: "supplier cost"}},
		{"letter", gatehouse.ActionFilter{Query: "s"}},
		{"status", gatehouse.ActionFilter{Query: "supplier key-77", Status: gatehouse.StatusApplied}},
		{"inbox", gatehouse.ActionFilter{Query: "key-777", Sort: gatehouse.SortUrgency}},
	}
	search := func(b *testing.B, f gatehouse.ActionFilter) {
		err := s.View(ctx, "default", func(tx gatehouse.ReadTx) error { _, err := tx.ListActions(f); return err })
		if err != nil {
			b.Fatal(err)
		}
	}
	run := func(when string) {
		for _, q := range queries {
			b.Run(q.name+"/"+when, func(b *testing.B) {
				var took []time.Duration
				for b.Loop() {
					began := time.Now()
					search(b, q.f)
					took = append(took, time.Since(began))
				}
				slices.Sort(took)
				b.ReportMetric(float64(took[len(took)*99/100].Microseconds())/1000, "p99-ms")
			})
		}
	}
	run("walked")
	began, blocks := time.Now(), 0
	for {
		var block *gatehouse.SearchBlock
		if err := s.ViewQueues(ctx, func(q gatehouse.ReadQueues) (err error) { block, err = q.NextSearchBlock(); return err }); err != nil {
			b.Fatal(err)
		}
		if block == nil {
			break
		}
		if err := s.UpdateQueues(ctx, func(q gatehouse.Queues) error { return q.PutSearchBlock(block) }); err != nil {
			b.Fatal(err)
		}
		blocks++
	}
	var bytes int64
	if err := s.view(ctx, "", func(t *readTx) (err error) {
		bytes, err = t.number(`SELECT sum(pgsize) FROM dbstat WHERE name IN ('action_word', 'action_word_block')`)
		return err
	}); err != nil {
		b.Log(err)
	}
	b.Logf("%d blocks in %v, %d bytes for an action", blocks, time.Since(began), bytes/int64(*searchRows))
	run("indexed")
}
