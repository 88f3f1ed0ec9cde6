package demo

import (
	"database/sql"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/client"
)

// twoLedgers makes a ledger and its copy.
func twoLedgers(t *testing.T) (expected, found *sql.DB) {
	t.Helper()
	dir := t.TempDir()
	original, second := filepath.Join(dir, "a.db"), filepath.Join(dir, "b.db")
	if err := MakeLedger(t.Context(), original); err != nil {
		t.Fatal(err)
	}
	expected = opened(t, original)
	if err := copyLedger(t.Context(), expected, second); err != nil {
		t.Fatal(err)
	}
	return expected, opened(t, second)
}

func opened(t *testing.T, path string) *sql.DB {
	t.Helper()
	db, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return db
}

func TestLedgerIsTheSameEachTime(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	var dbs [2]*sql.DB
	for i, name := range []string{"a.db", "b.db"} {
		path := filepath.Join(dir, name)
		if err := MakeLedger(t.Context(), path); err != nil {
			t.Fatal(err)
		}
		dbs[i] = opened(t, path)
	}
	rows, _, diffs, err := compare(t.Context(), dbs[0], dbs[1])
	if err != nil || len(diffs) > 0 {
		t.Fatalf("two new ledgers differ: %v %v", err, diffs)
	}
	if want := itemCount + customerCount + orderCount + refundCount + creditCount + 1; rows != want {
		t.Errorf("%d rows were compared, not %d", rows, want)
	}
	var dangling int
	if err := dbs[0].QueryRow("SELECT count(*) FROM pragma_foreign_key_check").Scan(&dangling); err != nil ||
		dangling > 0 {
		t.Errorf("%d references name nothing: %v", dangling, err)
	}
	if err := MakeLedger(t.Context(), filepath.Join(dir, "a.db")); err == nil {
		t.Error("a ledger was made over another")
	}
}

// TestCompareFindsEveryDifference changes one side only.
func TestCompareFindsEveryDifference(t *testing.T) {
	t.Parallel()
	expected, found := twoLedgers(t)
	if _, _, diffs, err := compare(t.Context(), expected, found); err != nil || len(diffs) > 0 {
		t.Fatalf("a copy differs: %v %v", err, diffs)
	}
	for name, c := range map[string]struct{ change, want string }{
		"a value": {`UPDATE items SET price = '9.99' WHERE sku = 'SKU-1042'`,
			`items 'SKU-1042' price: expected '10.00', found '9.99'`},
		"the same number": {`UPDATE items SET price = '10.0' WHERE sku = 'SKU-1042'`,
			`items 'SKU-1042' price: expected '10.00', found '10.0'`},
		"the version alone": {`UPDATE items SET version = version + 1 WHERE sku = 'SKU-1042'`,
			`items 'SKU-1042' version: expected 7, found 8`},
		"null and empty": {`UPDATE refunds SET paid = '' WHERE id = 'R-001'`,
			`refunds 'R-001' paid: expected NULL, found ''`},
		"a row gone": {`DELETE FROM credits WHERE id = 50`, `found no such row`},
		"a row more": {`INSERT INTO credits VALUES (51, 'C-0001', '5.00', 'EUR', 'x')`,
			`credits 51: expected no such row, found (51, 'C-0001', '5.00', 'EUR', 'x')`},
		"a table more": {`CREATE TABLE extra (id TEXT)`, `extra: expected nothing, found CREATE TABLE extra (id TEXT)`},
		"a table gone": {`DROP TABLE credits`, `credits: expected CREATE TABLE`},
		"a trigger": {`CREATE TRIGGER x AFTER INSERT ON items BEGIN SELECT 1; END`,
			`x: expected nothing, found CREATE TRIGGER`},
	} {
		t.Run(name, func(t *testing.T) {
			changed := filepath.Join(t.TempDir(), "changed.db")
			if err := copyLedger(t.Context(), found, changed); err != nil {
				t.Fatal(err)
			}
			db := opened(t, changed)
			if _, err := db.Exec(c.change); err != nil {
				t.Fatal(err)
			}
			_, _, diffs, err := compare(t.Context(), expected, db)
			if err != nil {
				t.Fatal(err)
			}
			if len(diffs) == 0 || !strings.Contains(diffs[0].String(), c.want) {
				t.Errorf("got %v, want %q", diffs, c.want)
			}
		})
	}
	// The connector's own table does not belong to the shop.
	if _, err := found.Exec(`CREATE TABLE gatehouse_applied (x TEXT)`); err != nil {
		t.Fatal(err)
	}
	if _, _, diffs, err := compare(t.Context(), expected, found); err != nil || len(diffs) > 0 {
		t.Errorf("the bookkeeping counts: %v %v", err, diffs)
	}
}

// TestOnlyAppliedEntriesAreExpected covers the possible entries of a journal.
func TestOnlyAppliedEntriesAreExpected(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), JournalFile)
	j, err := newJournal(path)
	if err != nil {
		t.Fatal(err)
	}
	update := func(e entry, item, price string) entry {
		e.Connector, e.Operation = "shop", "update"
		e.Target = gatehouse.Target{EntityType: "item", EntityRef: item}
		e.Change = object("price", price)
		return e
	}
	decided := func(d gatehouse.DecisionKind, answer, id string) entry {
		return entry{By: "ana", Kind: kindDecision, Decision: d, Answer: answer, ActionID: id}
	}
	for _, e := range []entry{
		update(decided(gatehouse.Approve, gatehouse.Decided, "act_1"), "SKU-0001", "1.00"),
		update(decided(gatehouse.Approve, gatehouse.Decided, "act_1"), "SKU-0001", "2.00"), // the same action
		update(decided(gatehouse.Reject, gatehouse.Decided, "act_2"), "SKU-0002", "1.00"),
		update(decided(gatehouse.Approve, gatehouse.VoteRecorded, "act_3"), "SKU-0003", "1.00"),
		update(decided(gatehouse.Approve, string(gatehouse.CodeTargetChanged), "act_4"), "SKU-0004", "1.00"),
		update(entry{By: agentName, Kind: kindAllowed, ActionID: "act_5"}, "SKU-0005", "1.00"),
		update(entry{By: "a clerk", Kind: kindOutside}, "SKU-0006", "1.00"),
		update(entry{By: "a clerk", Kind: kindOutside}, "SKU-0007", "1.00"),
		{By: agentName, Kind: kindAllowed, ActionID: "act_6", Connector: warehouseConnector, Operation: opReceive,
			Target: gatehouse.Target{EntityType: "item", EntityRef: "SKU-0008"}, Change: `{"quantity":3}`},
	} {
		if err := j.write(e); err != nil {
			t.Fatal(err)
		}
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	entries, err := readJournal(path)
	if err != nil {
		t.Fatal(err)
	}
	before, expected := twoLedgers(t)
	n, err := applyJournal(t.Context(), expected, entries)
	if err != nil || n != 5 {
		t.Fatalf("%d changes stand: %v", n, err)
	}
	_, _, diffs, err := compare(t.Context(), before, expected)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, d := range diffs {
		got = append(got, d.Key+" "+d.Column)
	}
	want := []string{
		"'SKU-0001' price", "'SKU-0001' version", "'SKU-0005' price", "'SKU-0005' version", "'SKU-0006' price",
		"'SKU-0006' version", "'SKU-0007' price", "'SKU-0007' version", "'SKU-0008' stock", "'SKU-0008' version",
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	// A change of a missing row cannot have been made.
	_, err = applyJournal(t.Context(), expected,
		[]entry{update(decided(gatehouse.Approve, gatehouse.Decided, "act_9"), "SKU-9999", "1.00")})
	if err == nil {
		t.Error("a change of no row was expected")
	}
}

// TestAMissingRowIsNamed: an entry that changes no row fails, and says so.
func TestAMissingRowIsNamed(t *testing.T) {
	t.Parallel()
	expected, _ := twoLedgers(t)
	_, err := applyJournal(t.Context(), expected, []entry{{By: agentName, Kind: kindAllowed, Connector: "shop",
		Operation: "update", Target: gatehouse.Target{EntityType: "item", EntityRef: "none"}, Change: `{"price":"1.00"}`}})
	if err == nil || !strings.HasSuffix(err.Error(), "update none: 0 rows changed instead of 1") {
		t.Error(err)
	}
}

// TestFolderOfADemo: a demo knows the folders of other versions, and takes no other folder for one.
func TestFolderOfADemo(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		put         func(mark string) error
		ok, notDemo bool
	}{
		"of this version": {func(m string) error { return os.WriteFile(m, []byte(mark), 0o600) }, true, false},
		"of another version": {func(m string) error {
			return os.WriteFile(m, []byte("This folder was made by \"gatehouse demo\". Its files:\n"), 0o600)
		}, true, false},
		"of somebody else":        {func(m string) error { return os.WriteFile(m, []byte("my demo\n"), 0o600) }, false, true},
		"without a mark":          {func(m string) error { return os.WriteFile(m+"2", nil, 0o600) }, false, true},
		"with an unreadable mark": {func(m string) error { return os.Mkdir(m, 0o700) }, false, false},
	} {
		dir := t.TempDir()
		if err := c.put(filepath.Join(dir, markFile)); err != nil {
			t.Fatal(err)
		}
		if err := Check(dir); (err == nil) != c.ok || errors.Is(err, ErrNotDemo) != c.notDemo {
			t.Errorf("a folder %s: %v", name, err)
		}
	}
}

// TestARefusedOrderThatIsExpiredIsNoDeadLetter: an action that ended in another way than expected is not kept, so
// the next situation does not replay it.
func TestARefusedOrderThatIsExpiredIsNoDeadLetter(t *testing.T) {
	t.Parallel()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte(`{"id":"act_1","status":"expired"}`))
	}))
	t.Cleanup(s.Close)
	agent, err := client.New(s.URL, "gth_x")
	if err != nil {
		t.Fatal(err)
	}
	p := &play{agent: agent}
	if p.order, err = p.finish(t.Context(), &Line{}, "act_1", gatehouse.StatusFailed); err == nil || p.order != nil {
		t.Errorf("%v, %v", p.order, err)
	}
	if err := replayedOrder(t.Context(), p, &Line{}); err == nil {
		t.Error("the order is replayed")
	}
}
