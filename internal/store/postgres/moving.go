package postgres

import (
	"context"
	"errors"

	"github.com/gatehouse-dev/gatehouse/internal/store/shared"
)

// MoveTable marks a database into which a data folder is being, or was, copied. It has one row,
// whose finished_at is NULL until the copy is complete and verified.
const MoveTable = "gatehouse_move"

// ErrMoving says that a database holds only a part of a data folder.
var ErrMoving = errors.New(
	"a data folder is being copied into this database; run `gatehouse migrate-store` to its end first")

// refuseMoving fails with [ErrMoving] while the copy is incomplete: a server would create new
// rows in place of the missing ones, and a later check would not notice.
func refuseMoving(ctx context.Context, db rowQuerier) error {
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

// SchemaVersion is the schema version that this program migrates to.
func SchemaVersion() int {
	return shared.NewestMigration(migrations)
}
