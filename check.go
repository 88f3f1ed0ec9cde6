package gatehouse

import (
	"context"
	"time"
)

// CheckService walks a whole store, for who has no access to its files.
type CheckService interface {
	// CheckStore holds every row of every tenant against the invariants of
	// docs/proof/README.md, and the audit logs against heads that were kept
	// elsewhere; a head without a tenant is of the default one. Nothing is
	// changed or locked. It reads everything: end it by ctx. The caller must be
	// an administrator of the default tenant; else its error has code
	// role_required. Violations in other tenants are counted and not listed.
	CheckStore(ctx context.Context, held []LogHead) (*StoreCheck, error)
	// CheckConfiguration looks at what the server's configuration names, as
	// "gatehouse config check" does: targets are asked and nothing is changed. What
	// was found stands for some seconds. The caller must be an operator; else its
	// error has code role_required. Connectors of other tenants are left out; what
	// is not of one connector is told in the default tenant only.
	CheckConfiguration(ctx context.Context) (*ConfigurationCheck, error)
}

// ConfigurationCheck is what a server found of its own configuration.
type ConfigurationCheck struct {
	At     time.Time              `json:"at"`
	Checks []ConfigurationFinding `json:"checks"`
}

// ConfigurationFinding is one thing that was looked at, such as "connector shop".
type ConfigurationFinding struct {
	Name string `json:"check"`
	// Result is ok, note or fail.
	Result string `json:"result"`
	// Detail is for an operator, without secrets.
	Detail string `json:"detail"`
}

// StoreCheck is what a check of a store found.
type StoreCheck struct {
	// OK is true when nothing is violated.
	OK         bool             `json:"ok"`
	Violations int              `json:"violations"`
	Invariants []InvariantCheck `json:"invariants"`
}

// InvariantCheck is one rule, by its number in docs/proof/README.md; 0 is the
// store itself.
type InvariantCheck struct {
	Number int    `json:"number"`
	Title  string `json:"title"`
	// Examined counts the rows, or actions with their rows, that were looked at.
	Examined int64 `json:"examined"`
	// NotChecked says why the rule was not looked at.
	NotChecked string `json:"not_checked,omitempty"`
	Violations int    `json:"violations"`
	// Listed are the first hundred of the violations that the caller may see.
	Listed []StoreViolation `json:"listed"`
}

// StoreViolation is one thing that is wrong with a store.
type StoreViolation struct {
	Tenant string `json:"tenant,omitempty"`
	ID     string `json:"id"`
	Detail string `json:"detail"`
}
