package postgres

import (
	"context"
	"log/slog"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/gatehouse-dev/gatehouse"
)

// TenantSetting is the setting by which the tables' policies know whose rows a
// transaction is about; AllTenants is its value for those of everybody. A
// program that reads the tables beside the store sets it for its connections,
// or sees nothing.
const (
	TenantSetting = "gatehouse.tenant"
	AllTenants    = "*"
)

// setTenant is for the rest of the transaction.
const setTenant = `SELECT set_config('` + TenantSetting + `', $1, true)`

// turn says whose rows the next statements are about. One tenant that is
// called as all are is nobody.
func (t *readTx) turn(tenant string) {
	if tenant == AllTenants {
		tenant = ""
	}
	t.tenant = tenant
}

// turned appends setTenant to a batch, where the next statements are about
// others than those before them.
func (t *readTx) turned(batch []query) []query {
	if t.tenant == t.told {
		return batch
	}
	sql := setTenant
	if t.told == "" && t.w != nil && t.w.course.patient {
		sql = t.s.patiently
	}
	t.told = t.tenant
	return append(batch, ask(sql, nil, t.tenant))
}

// readWalls and walls are what closures get: each method says whose rows it is
// about before its first statement. They wrap the methods, and are not part of
// them, so that the server hears of the tenant from the method's arguments,
// whatever the statements say; and they hold the transaction, and do not embed
// it, so that a method that is missing here does not compile.
type readWalls struct {
	t *readTx
	r gatehouse.ReadTx
}

type walls struct {
	readWalls
	w *tx
}

var (
	_ gatehouse.ReadTx = readWalls{}
	_ gatehouse.Tx     = walls{}
)

func (t *readTx) walled() readWalls { return readWalls{t, t} }

func (t *tx) walled() walls { return walls{readWalls{&t.readTx, t}, t} }

func (w readWalls) in(tenant string) gatehouse.ReadTx {
	w.t.turn(tenant)
	return w.r
}

func (w readWalls) all() gatehouse.ReadTx {
	w.t.tenant = AllTenants
	return w.r
}

func (w walls) in(tenant string) *tx {
	w.t.turn(tenant)
	return w.w
}

func (w walls) all() *tx {
	w.t.tenant = AllTenants
	return w.w
}

// warn tells operators that the tables' policies do not bind the role that the
// store connects as.
func warn(ctx context.Context, pool *pgxpool.Pool, log *slog.Logger) error {
	var role string
	var bypasses bool
	err := pool.QueryRow(ctx, `SELECT rolname::text, rolsuper OR rolbypassrls FROM pg_roles WHERE rolname = current_user`).Scan(&role, &bypasses)
	if err == nil && bypasses {
		log.WarnContext(ctx, "postgres: the role is not bound by row security: only the statements keep tenants apart; "+
			"connect as one that is no superuser and has no BYPASSRLS", "role", role)
	}
	return err
}
