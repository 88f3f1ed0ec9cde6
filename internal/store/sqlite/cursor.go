package sqlite

import (
	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/store/shared"
)

// The kinds of list that a cursor can belong to.
const (
	kindNewest     = shared.KindNewest
	kindUrgency    = shared.KindUrgency
	kindPushes     = shared.KindPushes
	kindMirror     = shared.KindMirror
	kindCorpus     = shared.KindCorpus
	kindPrincipals = shared.KindPrincipals
)

// cursorAt is a position in a list.
type cursorAt shared.Cursor

func (c cursorAt) encode() string { return shared.Cursor(c).Encode() }

func parseCursor(s, kind string, filter ...string) (cursorAt, error) {
	c, err := shared.ParseCursor(s, kind, filter...)
	return cursorAt(c), err
}

func filterHash(parts []string) uint64 { return shared.FilterHash(parts) }

func pageLimit(n int) int { return shared.PageLimit(n) }

// finish trims a page that was read with one extra row, and sets its cursor.
func finish[T any](page gatehouse.Page[T], limit int, at func(T) cursorAt, kind string, filter ...string) gatehouse.Page[T] {
	return shared.Finish(page, limit, func(last T) shared.Cursor { return shared.Cursor(at(last)) }, kind, filter...)
}
