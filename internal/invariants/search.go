package invariants

import (
	"bytes"
	"context"
	"database/sql"
	"strconv"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/store/postgres"
	"github.com/gatehouse-dev/gatehouse/internal/store/shared"
	"github.com/gatehouse-dev/gatehouse/internal/store/sqlite"
)

// searchIndex compares each block of the search index with the words of its actions: the index must name no
// action that is gone, and lack none that is there. A difference counts under rule 16, as a reference to
// nothing.
func (c *checker) searchIndex(ctx context.Context) error {
	var tenants []*gatehouse.Tenant
	err := c.t.Store.ViewQueues(ctx, func(q gatehouse.ReadQueues) (err error) {
		tenants, err = q.ListTenants()
		return err
	})
	for block, more := int64(0), true; more && err == nil; block++ {
		err = c.in(ctx, func(tx *sql.Tx) error {
			var mark int64
			if err := tx.QueryRowContext(ctx, `SELECT block FROM action_word_mark`).Scan(&mark); err != nil {
				return err
			}
			if more = block < mark; !more {
				return nil
			}
			return c.searchBlock(ctx, tx, tenants, block)
		})
	}
	return err
}

func (c *checker) searchBlock(ctx context.Context, tx *sql.Tx, tenants []*gatehouse.Tenant, block int64) error {
	actions, err := c.searchables(ctx, tx, block)
	if err != nil {
		return err
	}
	want := map[string]gatehouse.SearchTenant{}
	for _, t := range shared.BuildSearchBlock(block, actions).Tenants {
		want[t.Tenant] = t
	}
	for _, t := range tenants {
		wrong, err := c.searchTenant(ctx, tx, t.ID, block, want[t.ID])
		if err != nil {
			return err
		}
		if c.r.examined(16, 1); wrong != "" {
			c.r.violated(16, t.ID, "block "+strconv.FormatInt(block, 10),
				"the search index and the actions differ: %s", wrong)
		}
	}
	return nil
}

// searchTenant returns a difference between the index of a tenant's block and want, "" if there is none.
func (c *checker) searchTenant(
	ctx context.Context, tx *sql.Tx, tenant string, block int64, want gatehouse.SearchTenant,
) (wrong string, err error) {
	words := map[string][]byte{}
	for _, w := range want.Words {
		words[w.Word] = w.Rows
	}
	const ofBlock = ` WHERE tenant = ? AND block = ?`
	err = c.rows(ctx, tx, `SELECT word, rows FROM action_word`+ofBlock, func(rows *sql.Rows) error {
		var word string
		var have []byte
		err := rows.Scan(&word, &have)
		if !bytes.Equal(have, words[word]) {
			wrong = "the rows of " + strconv.Quote(word)
		}
		delete(words, word)
		return err
	}, tenant, block)
	for w := range words {
		wrong = "the index lacks " + strconv.Quote(w)
	}
	if err != nil || wrong != "" || len(want.Words) == 0 {
		return wrong, err
	}
	wrong = "the range of ids does not cover the actions"
	err = c.rows(ctx, tx, `SELECT low_id, top_id FROM action_word_block`+ofBlock, func(rows *sql.Rows) error {
		var low, top string
		err := rows.Scan(&low, &top)
		if low <= want.LowID && top >= want.TopID {
			wrong = ""
		}
		return err
	}, tenant, block)
	return wrong, err
}

// searchables reads the actions of a block.
func (c *checker) searchables(ctx context.Context, tx *sql.Tx, block int64) (list []*shared.Searchable, err error) {
	query := postgres.SelectSearchable
	if c.t.sqlite {
		query = sqlite.SelectSearchable
	}
	var cells []string
	var into []any
	text := func() string {
		s := cells[0]
		cells = cells[1:]
		return s
	}
	number := func() int64 {
		n, e := strconv.ParseInt(text(), 10, 64)
		if e != nil {
			err = e
		}
		return n
	}
	e := c.rows(ctx, tx, query+`a.seq >= ? AND a.seq < ?`, func(rows *sql.Rows) error {
		columns, err := rows.Columns()
		if err != nil {
			return err
		}
		cells, into = make([]string, len(columns)), make([]any, len(columns))
		for i := range cells {
			into[i] = &cells[i]
		}
		if err := rows.Scan(into...); err != nil {
			return err
		}
		list = append(list, shared.ScanSearchable(text, number))
		return nil
	}, block*shared.SearchBlockRows, (block+1)*shared.SearchBlockRows)
	if err == nil {
		err = e
	}
	return list, err
}

// rows calls row for every row of a query whose parameters are ?.
func (c *checker) rows(ctx context.Context, tx *sql.Tx, query string, row func(*sql.Rows) error, args ...any) error {
	if !c.t.sqlite {
		query = numbered(query)
	}
	return each(ctx, tx, query, row, args...)
}
