package serve

import (
	"bytes"
	"context"
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/demo"
	"github.com/gatehouse-dev/gatehouse/internal/term"
)

// saboteur watches the play, and changes the ledger without the gate when a situation has ended.
type saboteur struct {
	t      *testing.T
	ledger string
	writes map[string]string // by situation
}

func (*saboteur) Chapter(int, int, string) {}
func (*saboteur) Say(string)               {}

func (*saboteur) Ask(context.Context, string, *gatehouse.Action) (demo.Choice, error) {
	return demo.Undecided, nil
}

func (s *saboteur) Settled(l *demo.Line) {
	if l.Err != "" {
		s.t.Errorf("%s: %s", l.Name, l.Err)
	}
	statement, ok := s.writes[l.Name]
	if !ok {
		return
	}
	delete(s.writes, l.Name)
	db, err := demo.Open(s.ledger)
	must(s.t, err)
	defer db.Close()
	if _, err := db.Exec(statement); err != nil {
		s.t.Fatal(err)
	}
}

// TestDemoFindsUnapprovedWrites: exactly the writes that are in no journal are found.
func TestDemoFindsUnapprovedWrites(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "demo")
	var out, errOut bytes.Buffer
	g := &term.IO{Ctx: t.Context(), Stdout: &out, Stderr: &errOut, Columns: 80}
	s := &saboteur{t: t, ledger: filepath.Join(dir, demo.LedgerFile), writes: map[string]string{
		// It overwrites an approved change, in another row than the one that is undone later.
		"routine price changes": `UPDATE items SET price = '99.99', version = version + 1 WHERE sku = 'SKU-0104'`,
		// It changes an untouched row.
		"a refund in the wrong currency": `UPDATE refunds SET status = 'paid' WHERE id = 'R-001'`,
		// They overwrite a new row, repeat an effect, and delete a row that should remain.
		"a new customer, to be confirmed": `UPDATE customers SET email = 'someone@example.com' WHERE id = 'C-1001'`,
		"a lost answer, not safe to ask again": `INSERT INTO credits SELECT id + 1, customer_id, amount, currency, reason
			FROM credits WHERE id = 51`,
		"a bulk deletion that needs two people": `DELETE FROM items WHERE sku = 'SKU-1975'`,
	}}
	result, err := playDemo(g, dir, s)
	must(t, err)
	if len(s.writes) > 0 {
		t.Fatalf("not written: %v", s.writes)
	}
	var got []string
	for _, d := range result.Differences {
		got = append(got, strings.TrimSpace(d.Table+" "+d.Key+" "+d.Column))
	}
	want := []string{
		"credits 52", "customers 'C-1001' email", "items 'SKU-0104' price", "items 'SKU-0104' version",
		"items 'SKU-1975'", "refunds 'R-001' status",
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	if err := result.print(g, dir); !errors.Is(err, term.Exit(term.ExitError)) {
		t.Errorf("it ends with %v", err)
	}
	for _, line := range []string{"ledger\t✗ not what was approved: 6 differences\n", "audit log\t✓ "} {
		if !strings.Contains(out.String(), line) {
			t.Errorf("stdout has no %q:\n%s", line, &out)
		}
	}
	if line := "differs: items 'SKU-0104' price: expected "; !strings.Contains(errOut.String(), line) {
		t.Errorf("stderr has no %q:\n%s", line, &errOut)
	}
}
