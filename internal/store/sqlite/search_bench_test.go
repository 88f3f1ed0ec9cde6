package sqlite

import (
	"context"
	"flag"
	"testing"

	"github.com/gatehouse-dev/gatehouse/internal/store/storetest"
)

var searchRows = flag.Int("search", 200_000, "actions in BenchmarkSearch; a tenth of them are pending")

func BenchmarkSearch(b *testing.B) {
	s := openTest(b, Config{})
	populate(b, s, *searchRows, 10, "60 + i * 7907 % 260000")
	storetest.BenchmarkSearch(b, s, func() error { // the baseline: reads every rationale for a text that none has
		return s.view(context.Background(), "default", func(t *readTx) error {
			_, err := t.number(`SELECT count(*) FROM (SELECT a.id FROM action a JOIN proposal p ON p.seq = a.seq
WHERE a.tenant = 'default' AND instr(lower(p.rationale), 'nothing of the kind') > 0 ORDER BY a.id DESC LIMIT 51)`)
			return err
		})
	})
}
