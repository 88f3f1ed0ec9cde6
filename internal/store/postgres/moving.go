package postgres

import (
	"context"
	"errors"

	"github.com/gatehouse-dev/gatehouse/internal/store/shared"
)

// MoveTable is the table by which a database tells that a data folder is, or
// was, copied into it: one row, whose finished_at is NULL until the copy is
// whole and verified.
const MoveTable = "gatehouse_move"

// ErrMoving says that a database holds a part of a data folder only.
var ErrMoving = errors.New("a data folder is being copied into this database; run `gatehouse migrate-store` to its end first")

// refuseMoving fails with [ErrMoving] while the copy is not whole: a server on
// half of the rows would make others in their places, and a check would find
// nothing wrong with them.
func refuseMoving(ctx context.Context, db asker) error {
	var there, unfinished bool
	if err := db.QueryRow(ctx, `SELECT to_regclass('`+MoveTable+`') IS NOT NULL`).Scan(&there); err != nil || !there {
		return err
	}
	err := db.QueryRow(ctx, `SELECT EXISTS (SELECT 1 FROM `+MoveTable+` WHERE finished_at IS NULL)`).Scan(&unfinished)
	if err == nil && unfinished {
		return ErrMoving
	}
	return err
}

// SchemaVersion is the version to which this program brings a database.
func SchemaVersion() int {
	return shared.NewestMigration(migrations)
}
