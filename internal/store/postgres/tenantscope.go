package postgres

import (
	"context"
	"log/slog"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5/pgxpool"
)

// TenantSetting is the PostgreSQL setting that the row security policies of the tables read. It holds the
// tenant of a transaction, several tenants separated by commas, or AllTenants. A program that reads the tables
// directly must set it on its connections; otherwise it sees no rows.
const (
	TenantSetting = "gatehouse.tenant"
	AllTenants    = "*"
)

// setTenant sets TenantSetting until the end of the transaction.
const setTenant = `SELECT set_config('` + TenantSetting + `', $1, true)`

// useTenant sets the tenant of the next statements. No tenant is named AllTenants or has a comma in its name:
// such a name selects no tenant.
func (t *readTx) useTenant(tenant string) {
	if tenant == AllTenants || strings.Contains(tenant, ",") {
		tenant = ""
	}
	t.tenant = tenant
}

// nameTenant sets the tenant of statements that a group, or a batch of Reads, will send.
func (t *readTx) nameTenant(lists ...[]query) {
	for _, list := range lists {
		for i := range list {
			list[i].tenant = t.tenant
		}
	}
}

// useTenantsOf sets the tenants of the next statements to the tenants of the given queries, which belong to
// several transactions.
func (t *readTx) useTenantsOf(lists ...[]query) {
	var tenants []string
	for _, q := range slices.Concat(lists...) {
		tenants = append(tenants, q.tenant)
	}
	if slices.Contains(tenants, AllTenants) {
		tenants = []string{AllTenants}
	}
	slices.Sort(tenants)
	t.tenant = strings.Join(slices.Compact(tenants), ",")
}

// AllTenants makes the next statements apply to all tenants, until the caller calls restore.
func (t *readTx) AllTenants() (restore func()) {
	previous := t.tenant
	t.tenant = AllTenants
	return func() { t.tenant = previous }
}

// Tenant returns the tenant of the next statements.
func (t *readTx) Tenant() string { return t.tenant }

// withTenant appends setTenant to a batch if the server's setting is not the tenant of the next
// statements.
func (t *readTx) withTenant(batch []query) []query {
	if t.tenant == t.serverTenant {
		return batch
	}
	sql := setTenant
	if t.serverTenant == "" && t.update != nil && t.update.mode.longWait {
		sql = t.s.setTenantLongWait
	}
	t.serverTenant = t.tenant
	return append(batch, ask(sql, nil, t.tenant))
}

// warnOfBypass logs a warning if row security does not apply to the role of the store.
func warnOfBypass(ctx context.Context, pool *pgxpool.Pool, log *slog.Logger) error {
	var role string
	var bypasses bool
	err := pool.QueryRow(ctx,
		`SELECT rolname::text, rolsuper OR rolbypassrls FROM pg_roles WHERE rolname = current_user`).Scan(&role, &bypasses)
	if err == nil && bypasses {
		log.WarnContext(ctx, "postgres: row security does not apply to the role, so only the conditions of the "+
			"statements separate tenants; connect as a role that is not a superuser and has no BYPASSRLS", "role", role)
	}
	return err
}
