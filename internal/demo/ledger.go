package demo

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/url"
	"path/filepath"

	_ "modernc.org/sqlite" // the ledger's driver
)

// schema is the schema of the shop. Money is text, so that nothing rounds it. The version
// columns reveal concurrent changes.
const schema = `
CREATE TABLE about (name TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT;
CREATE TABLE items (
  sku TEXT PRIMARY KEY, name TEXT NOT NULL, price TEXT NOT NULL, cost TEXT NOT NULL, currency TEXT NOT NULL,
  stock INTEGER NOT NULL CHECK (stock >= 0), description TEXT NOT NULL DEFAULT '', tag TEXT NOT NULL DEFAULT '',
  discontinued INTEGER NOT NULL DEFAULT 0 CHECK (discontinued IN (0, 1)), version INTEGER NOT NULL
) STRICT;
CREATE TABLE customers (
  id TEXT PRIMARY KEY, name TEXT NOT NULL, email TEXT NOT NULL UNIQUE, country TEXT NOT NULL,
  currency TEXT NOT NULL, note TEXT NOT NULL DEFAULT '', version INTEGER NOT NULL
) STRICT;
CREATE TABLE orders (
  id TEXT PRIMARY KEY, customer_id TEXT NOT NULL REFERENCES customers (id), sku TEXT NOT NULL REFERENCES items (sku),
  quantity INTEGER NOT NULL CHECK (quantity > 0), total TEXT NOT NULL, currency TEXT NOT NULL,
  status TEXT NOT NULL CHECK (status IN ('open', 'shipped', 'returned')), placed_on TEXT NOT NULL, version INTEGER NOT NULL
) STRICT;
CREATE TABLE refunds (
  id TEXT PRIMARY KEY, order_id TEXT NOT NULL REFERENCES orders (id), order_currency TEXT NOT NULL, requested TEXT NOT NULL,
  status TEXT NOT NULL CHECK (status IN ('requested', 'paid')), paid TEXT, paid_currency TEXT, version INTEGER NOT NULL
) STRICT;
CREATE TABLE credits (
  id INTEGER PRIMARY KEY, customer_id TEXT NOT NULL REFERENCES customers (id), amount TEXT NOT NULL,
  currency TEXT NOT NULL, reason TEXT NOT NULL
) STRICT;
CREATE INDEX orders_by_customer ON orders (customer_id);
CREATE INDEX orders_by_sku ON orders (sku);
CREATE INDEX refunds_by_order ON refunds (order_id);
CREATE INDEX credits_by_customer ON credits (customer_id);
INSERT INTO about VALUES ('demo', 'made by Gatehouse: no such shop exists');
`

// The size of the shop. The last items are discontinued, and nobody ordered them.
const (
	itemCount         = 2000
	discontinuedCount = 40
	customerCount     = 1000
	orderCount        = 3000
	refundCount       = 100
	creditCount       = 50
)

// Open opens an existing ledger.
func Open(path string) (*sql.DB, error) { return open(path, "rw") }

func open(path, mode string) (*sql.DB, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	q := url.Values{"mode": {mode}, "_pragma": {"busy_timeout(10000)", "foreign_keys(1)", "synchronous(2)"}}
	address := url.URL{Scheme: "file", Path: path, RawQuery: q.Encode() + "&_txlock=immediate"}
	return sql.Open("sqlite", address.String())
}

// MakeLedger creates the shop's ledger, which is always the same. The file must not exist.
func MakeLedger(ctx context.Context, path string) (err error) {
	db, err := open(path, "rwc")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	if _, err := db.ExecContext(ctx, "PRAGMA journal_mode = wal"); err != nil {
		return err
	}
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	g := &generator{ctx: ctx, tx: tx, random: rand.New(rand.NewPCG(20, 26))}
	g.run(schema)
	g.items()
	g.customers()
	g.orders()
	g.refunds()
	g.credits()
	if g.err != nil {
		return errors.Join(g.err, tx.Rollback())
	}
	return tx.Commit()
}

// copyLedger writes a copy of the ledger to a file that must not exist.
func copyLedger(ctx context.Context, db *sql.DB, to string) error {
	_, err := db.ExecContext(ctx, "VACUUM INTO ?", to)
	return err
}

// generator fills a new ledger. After the first error it does nothing.
type generator struct {
	ctx    context.Context
	tx     *sql.Tx
	random *rand.Rand
	err    error
	// Later rows refer to these values.
	prices     []int // by item, in cents
	currencies []string
	placed     []order
}

type order struct {
	cents    int
	currency string
}

func (g *generator) run(statement string) {
	if g.err == nil {
		_, g.err = g.tx.ExecContext(g.ctx, statement)
	}
}

// rows inserts n rows, numbered from 1.
func (g *generator) rows(n int, insert string, row func(i int) []any) {
	if g.err != nil {
		return
	}
	stmt, err := g.tx.PrepareContext(g.ctx, insert)
	if err != nil {
		g.err = err
		return
	}
	defer stmt.Close()
	for i := 1; i <= n && g.err == nil; i++ {
		_, g.err = stmt.ExecContext(g.ctx, row(i)...)
	}
}

func (g *generator) pick(words []string) string { return words[g.random.IntN(len(words))] }

var (
	woods  = []string{"Walnut", "Oak", "Birch", "Cherry", "Ash", "Maple", "Beech", "Pine"}
	things = []string{"desk lamp", "bookend", "pen tray", "stool", "coat rack", "clock", "side table", "wall shelf",
		"letter box", "bread board"}
	firsts = []string{"Ada", "Bruno", "Chiara", "Dmitri", "Esther", "Farid", "Greta", "Hugo", "Ines", "Jonas", "Karin",
		"Luis"}
	lasts = []string{"Adler", "Brandt", "Costa", "Dubois", "Eriksen", "Fischer", "Garcia", "Haas", "Ivanova", "Jensen",
		"Keller", "Lindqvist"}
)

func (g *generator) items() {
	g.rows(itemCount,
		`INSERT INTO items (sku, name, price, cost, currency, stock, discontinued, version)
			VALUES (?, ?, ?, ?, 'USD', ?, ?, ?)`,
		func(i int) []any {
			name := g.pick(woods) + " " + g.pick(things)
			cost := 300 + g.random.IntN(6000)
			price := cost + cost*(30+g.random.IntN(40))/100
			stock, version := g.random.IntN(400), 1+g.random.IntN(9)
			if i == 1 || i == 1042 { // the items that the documentation changes
				name, price, cost, version = "Walnut desk lamp", 1000, 800, 7
			}
			discontinued := 0
			if i > itemCount-discontinuedCount {
				discontinued = 1
			}
			g.prices = append(g.prices, price)
			return []any{sku(i), name, money(price), money(cost), stock, discontinued, version}
		})
}

func (g *generator) customers() {
	g.rows(customerCount, `INSERT INTO customers (id, name, email, country, currency, version) VALUES (?, ?, ?, ?, ?, 1)`,
		func(i int) []any {
			country, currency := "US", "USD"
			if g.random.IntN(3) == 0 {
				country, currency = g.pick([]string{"DE", "ES", "FR", "IT"}), "EUR"
			}
			g.currencies = append(g.currencies, currency)
			return []any{customer(i), g.pick(firsts) + " " + g.pick(lasts), fmt.Sprintf("c%04d@example.com", i), country,
				currency}
		})
}

func (g *generator) orders() {
	g.rows(orderCount, `INSERT INTO orders VALUES (?, ?, ?, ?, ?, ?, ?, ?, 1)`, func(i int) []any {
		who, item, quantity := 1+g.random.IntN(customerCount), 1+g.random.IntN(itemCount-discontinuedCount),
			1+g.random.IntN(5)
		o := order{g.prices[item-1] * quantity, g.currencies[who-1]}
		g.placed = append(g.placed, o)
		day := fmt.Sprintf("2026-%02d-%02d", 1+g.random.IntN(9), 1+g.random.IntN(28))
		return []any{
			orderID(i), customer(who), sku(item), quantity, money(o.cents), o.currency,
			g.pick([]string{"open", "shipped", "shipped", "returned"}), day,
		}
	})
}

// refunds begins with the three refunds of the situations.
func (g *generator) refunds() {
	played := []order{{4840, "EUR"}, {18000, "USD"}, {9500, "USD"}}
	next := 0
	g.rows(refundCount,
		`INSERT INTO refunds (id, order_id, order_currency, requested, status, version) VALUES (?, ?, ?, ?, 'requested', 1)`,
		func(i int) []any {
			var want order
			if i <= len(played) {
				want = played[i-1]
			}
			for want.currency != "" && (g.placed[next].currency != want.currency || g.placed[next].cents < want.cents) {
				next++
			}
			o := g.placed[next]
			next++
			if want.currency == "" {
				want = order{o.cents / 2, o.currency}
			}
			return []any{refundID(i), orderID(next), want.currency, money(want.cents)}
		})
}

func (g *generator) credits() {
	g.rows(creditCount, `INSERT INTO credits VALUES (?, ?, ?, ?, 'late delivery')`, func(i int) []any {
		who := 1 + g.random.IntN(customerCount)
		return []any{i, customer(who), money(500 + 100*g.random.IntN(20)), g.currencies[who-1]}
	})
}

func sku(i int) string      { return fmt.Sprintf("SKU-%04d", i) }
func customer(i int) string { return fmt.Sprintf("C-%04d", i) }
func orderID(i int) string  { return fmt.Sprintf("O-%05d", i) }
func refundID(i int) string { return fmt.Sprintf("R-%03d", i) }

// money formats cents as a decimal.
func money(cents int) string { return fmt.Sprintf("%d.%02d", cents/100, cents%100) }
