package postgres

import (
	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/store/shared"
)

// runsByInput is ListRuns with a filter on a member of the input. It examines up to MaxRunsSearched runs,
// newest first. A text search selects candidates; the decoded input decides.
func (t *readTx) runsByInput(
	f gatehouse.RunFilter, where condition, limit int, bound []string,
) (page gatehouse.Page[*gatehouse.Run], err error) {
	page.Items = []*gatehouse.Run{}
	var places []shared.Cursor
	last := condition{where: where.where, args: append([]any(nil), where.args...)}
	one, other := f.InputTexts()
	newest := where.sql() + where.number(` ORDER BY r.created_at DESC, r.seq DESC LIMIT ?`, gatehouse.MaxRunsSearched)
	texts := where.number(`(strpos(b.input, ?) > 0 OR strpos(b.input, ?) > 0)`, one, other)
	err = t.each(`SELECT b.input, r.seq, `+runColumns+` FROM run r JOIN run_body b ON b.seq = r.seq WHERE r.seq IN (
  SELECT r.seq FROM run r WHERE `+newest+`) AND `+texts+` ORDER BY r.created_at DESC, r.seq DESC`, func(r *row) error {
		input, seq := gatehouse.JSON(r.Text()), r.Int()
		run := shared.ScanRun(r)
		if len(places) <= limit && f.HasInput(input) {
			places, page.Items = append(places, shared.Cursor{Seq: seq, AsOf: run.CreatedAt.UnixMicro()}),
				append(page.Items, run)
		}
		return nil
	}, where.args...)
	if err != nil || len(places) > limit {
		return shared.Finish(page, limit, func(*gatehouse.Run) shared.Cursor { return places[limit-1] }, shared.KindRuns,
			bound...), err
	}
	// The page is not full. If MaxRunsSearched runs were examined, the next page begins after the last of them.
	t.allowSecondRead()
	offset := last.number(` ORDER BY r.created_at DESC, r.seq DESC LIMIT 1 OFFSET ?`, gatehouse.MaxRunsSearched-1)
	err = t.each(`SELECT r.created_at, r.seq FROM run r WHERE `+last.sql()+offset, func(r *row) error {
		page.NextCursor = shared.Cursor{
			Kind: shared.KindRuns, Filter: shared.FilterHash(bound), AsOf: r.Int(), Seq: r.Int(),
		}.Encode()
		return nil
	}, last.args...)
	return page, err
}
