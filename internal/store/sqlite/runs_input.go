package sqlite

import (
	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/store/shared"
)

// runsByInput is ListRuns with a filter on a member of the input. It examines at
// most MaxRunsSearched runs, newest first. A text search preselects runs; HasInput
// decides.
func (t *readTx) runsByInput(
	f gatehouse.RunFilter, where condition, limit int, bound []string,
) (page gatehouse.Page[*gatehouse.Run], err error) {
	page.Items = []*gatehouse.Run{}
	type place struct{ at, seq int64 }
	var found []place
	one, other := f.InputTexts()
	err = t.each(`SELECT b.input, `+runColumns+` FROM run r JOIN run_body b ON b.seq = r.seq WHERE r.seq IN (
  SELECT r.seq FROM run r WHERE `+where.sql()+` ORDER BY r.created_at DESC, r.seq DESC LIMIT ?)
AND (instr(b.input, ?) > 0 OR instr(b.input, ?) > 0) ORDER BY r.created_at DESC, r.seq DESC`, func(r *stmt) error {
		input := gatehouse.JSON(r.Text())
		seq, run := r.Int(), shared.ScanRun(r)
		if len(found) <= limit && f.HasInput(input) {
			found, page.Items = append(found, place{run.CreatedAt.UnixMicro(), seq}), append(page.Items, run)
		}
		return nil
	}, append(where.args[:len(where.args):len(where.args)], gatehouse.MaxRunsSearched, one, other)...)
	if err != nil {
		return page, err
	}
	cursor := func(p place) string {
		return shared.Cursor{Kind: shared.KindRuns, Filter: shared.FilterHash(bound), Seq: p.seq, AsOf: p.at}.Encode()
	}
	if len(found) > limit {
		page.Items, page.NextCursor = page.Items[:limit], cursor(found[limit-1])
		return page, nil
	}
	// The cursor is the last examined run; more runs may follow.
	err = t.each(`SELECT r.created_at, r.seq FROM run r WHERE `+where.sql()+
		` ORDER BY r.created_at DESC, r.seq DESC LIMIT 1 OFFSET ?`,
		func(r *stmt) error { page.NextCursor = cursor(place{r.Int(), r.Int()}); return nil },
		append(where.args[:len(where.args):len(where.args)], gatehouse.MaxRunsSearched-1)...)
	return page, err
}
