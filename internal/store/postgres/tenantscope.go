package postgres

import (
	"context"
	"log/slog"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/gatehouse-dev/gatehouse"
)

// TenantSetting is the setting that tells the tables' row security policies the tenant of a transaction, or
// several with commas between; the value AllTenants means all tenants. A program that reads the tables directly
// sets it on its connections, or it sees no rows.
const (
	TenantSetting = "gatehouse.tenant"
	AllTenants    = "*"
)

// setTenant holds until the end of the transaction.
const setTenant = `SELECT set_config('` + TenantSetting + `', $1, true)`

// useTenant sets the tenant of the next statements. A tenant with the name AllTenants, or with a comma in
// its name, does not exist.
func (t *readTx) useTenant(tenant string) {
	if tenant == AllTenants || strings.Contains(tenant, ",") {
		tenant = ""
	}
	t.tenant = tenant
}

// nameTenant writes the tenant into statements that a group, or a batch of Reads, will send.
func (t *readTx) nameTenant(lists ...[]query) {
	for _, list := range lists {
		for i := range list {
			list[i].tenant = t.tenant
		}
	}
}

// useTenantsOf sets the tenants of the next statements, which are those of several transactions.
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

// AllTenants makes the statements of one method concern all tenants; back restores the tenant.
func (t *readTx) AllTenants() (back func()) {
	was := t.tenant
	t.tenant = AllTenants
	return func() { t.tenant = was }
}

// Tenant is the tenant of the next statements.
func (t *readTx) Tenant() string { return t.tenant }

// Owns refuses a row of another tenant than the transaction's.
func (t *readTx) Owns(tenant string) error {
	if tenant != t.tenant {
		return gatehouse.ErrOtherTenant
	}
	return nil
}

// withTenant appends setTenant to a batch if the next statements are for another tenant than
// the previous ones.
func (t *readTx) withTenant(batch []query) []query {
	if t.tenant == t.serverTenant {
		return batch
	}
	sql := setTenant
	if t.serverTenant == "" && t.w != nil && t.w.mode.longWait {
		sql = t.s.setTenantLongWait
	}
	t.serverTenant = t.tenant
	return append(batch, ask(sql, nil, t.tenant))
}

// warn logs a warning if row security does not bind the role of the store.
func warn(ctx context.Context, pool *pgxpool.Pool, log *slog.Logger) error {
	var role string
	var bypasses bool
	err := pool.QueryRow(ctx,
		`SELECT rolname::text, rolsuper OR rolbypassrls FROM pg_roles WHERE rolname = current_user`).Scan(&role, &bypasses)
	if err == nil && bypasses {
		log.WarnContext(ctx, "postgres: the role is not bound by row security: only the statements keep tenants apart; "+
			"connect as one that is not a superuser and has no BYPASSRLS", "role", role)
	}
	return err
}
