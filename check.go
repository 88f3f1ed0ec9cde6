package gatehouse

import (
	"context"
	"time"
)

// CheckService checks a server's store and configuration, for callers that cannot open the store
// themselves.
type CheckService interface {
	// CheckStore checks every row of every tenant against the invariants of
	// docs/proof/README.md, and the audit logs against heads that were kept
	// elsewhere; a head without a tenant belongs to the default one. It changes and
	// locks nothing. It reads the whole store: cancel it by ctx. The caller must be
	// an administrator of the default tenant; else the error has code
	// role_required. Violations in other tenants are counted and not listed.
	CheckStore(ctx context.Context, held []LogHead) (*StoreCheck, error)
	// CheckConfiguration checks the server's configuration as "gatehouse config
	// check" does: it asks targets and changes nothing. Findings are cached for
	// some seconds. The caller must be an operator; else the error has code
	// role_required. Connectors of other tenants are left out; findings that
	// concern no connector are shown in the default tenant only.
	CheckConfiguration(ctx context.Context) (*ConfigurationCheck, error)
}

// ConfigurationCheck lists a server's findings in its own configuration.
type ConfigurationCheck struct {
	// At is when the checks ran; they may be some seconds old.
	At time.Time `json:"at"`
	// Checks are in the order in which they ran.
	Checks []ConfigurationFinding `json:"checks"`
}

// ConfigurationFinding is the result of one check.
type ConfigurationFinding struct {
	// Name is what was checked, such as "connector shop".
	Name string `json:"check"`
	// Result is ok, note or fail.
	Result string `json:"result"`
	// Detail is for an operator, without secrets.
	Detail string `json:"detail"`
}

// StoreCheck is the result of a check of a store.
type StoreCheck struct {
	// OK is true when nothing is violated.
	OK bool `json:"ok"`
	// Violations counts all violations, over all invariants and tenants.
	Violations int `json:"violations"`
	// Invariants has one check for each rule, by number.
	Invariants []InvariantCheck `json:"invariants"`
}

// InvariantCheck is the result of checking one rule.
type InvariantCheck struct {
	// Number is the rule's number in docs/proof/README.md; 0 is the store itself.
	Number int `json:"number"`
	// Title is the rule in a few words.
	Title string `json:"title"`
	// Examined counts the checked rows, or the checked actions; an action with all its rows counts as one.
	Examined int64 `json:"examined"`
	// NotChecked says why the rule was not checked; "" when it was.
	NotChecked string `json:"not_checked,omitempty"`
	// Violations counts all of them, including those not listed.
	Violations int `json:"violations"`
	// Listed are the first hundred violations that the caller may see.
	Listed []StoreViolation `json:"listed"`
}

// StoreViolation is one row of a store that violates a rule.
type StoreViolation struct {
	// Tenant is "" for the store itself.
	Tenant string `json:"tenant,omitempty"`
	// ID is the id of the row.
	ID string `json:"id"`
	// Detail says what is wrong with the row.
	Detail string `json:"detail"`
}
