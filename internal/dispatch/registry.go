package dispatch

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/connector"
)

// Target is a configured connector.
type Target struct {
	Name      string
	Connector connector.Connector
	// Tenants lists the tenants that may use the connector. Empty means only
	// the default tenant, AllTenants means every tenant.
	Tenants []string
	// Unready, if not nil, is the reason why the target must not be called, for example a missing secret. Then an
	// attempt of a push fails without a call. It counts, and the push is retried while attempts are left. Connector
	// may then be nil.
	Unready error
	// Stored says that the connector is configured in the store.
	Stored bool
	// Concurrency bounds the concurrent calls of this process; 0 means no bound.
	Concurrency int
}

// AllTenants in Target.Tenants means every tenant.
const AllTenants = "*"

// Serves reports whether a tenant may use the connector.
func (t *Target) Serves(tenant string) bool {
	if len(t.Tenants) == 0 {
		return tenant == gatehouse.DefaultTenant
	}
	return slices.Contains(t.Tenants, tenant) || slices.Contains(t.Tenants, AllTenants)
}

// Registry holds the configured connectors. Only [Registry.Replace] changes it.
type Registry struct {
	state atomic.Pointer[registered]
	// used maps the name of a connector to the time of its last call.
	used sync.Map
	// refresh reloads the connectors that are configured in the store; nil if SetRefresh was not called.
	refresh func(context.Context) error
	// onRemoved is called with the name of each connector that Replace has removed; nil for none.
	onRemoved  atomic.Pointer[func(name string)]
	callLimits callLimits
}

// registered is an immutable snapshot of a registry's content.
type registered struct {
	targets map[string]Target
	// redactors has a redactor for each tenant with secrets of its own, and that of AllTenants for the others.
	redactors map[string]*connector.Redactor
}

// NewRegistry makes a registry. Names must be valid and distinct.
func NewRegistry(targets ...Target) (*Registry, error) {
	all := make(map[string]Target, len(targets))
	for _, t := range targets {
		if !gatehouse.ValidName(t.Name) {
			return nil, fmt.Errorf("%s cannot name a connector", gatehouse.Quote(t.Name))
		}
		if _, ok := all[t.Name]; ok {
			return nil, fmt.Errorf("two connectors are named %s", gatehouse.Quote(t.Name))
		}
		if t.Connector == nil && t.Unready == nil {
			return nil, fmt.Errorf("connector %s is missing", gatehouse.Quote(t.Name))
		}
		all[t.Name] = t
	}
	r := &Registry{}
	r.state.Store(&registered{targets: all})
	return r, nil
}

// snapshot returns the current snapshot.
func (r *Registry) snapshot() *registered {
	if s := r.state.Load(); s != nil {
		return s
	}
	return &registered{}
}

// Replace adds targets, or replaces the targets of the same names. It removes the targets named by removed, and
// replaces the secrets to redact. Calls in progress keep their connector.
func (r *Registry) Replace(targets []Target, removed []string, secrets Secrets) {
	all := maps.Clone(r.snapshot().targets)
	for _, name := range removed {
		delete(all, name)
	}
	for _, t := range targets {
		all[t.Name] = t
	}
	r.state.Store(&registered{targets: all, redactors: secrets.redactors()})
	for _, name := range removed {
		r.used.Delete(name)
		if fn := r.onRemoved.Load(); fn != nil {
			(*fn)(name)
		}
	}
}

// exists reports whether a connector of this name is configured, for whatever tenant.
func (r *Registry) exists(name string) bool {
	_, ok := r.snapshot().targets[name]
	return ok
}

// SetRefresh sets the function that reloads the connectors that are configured in the store. The function
// returns an error if this process cannot use them. Call SetRefresh before the dispatcher runs.
func (r *Registry) SetRefresh(refresh func(context.Context) error) { r.refresh = refresh }

// mayBeOutdated reports whether the store may have a newer connector with this name than the registry.
func (r *Registry) mayBeOutdated(name string) bool {
	t, ok := r.snapshot().targets[name]
	return r.refresh != nil && (!ok || t.Stored)
}

// Targets returns all targets, sorted by name.
func (r *Registry) Targets() []Target {
	return slices.SortedFunc(maps.Values(r.snapshot().targets), func(a, b Target) int {
		return strings.Compare(a.Name, b.Name)
	})
}

// Names returns the sorted names of the connectors that serve a tenant.
func (r *Registry) Names(tenant string) []string {
	var names []string
	for name, t := range r.snapshot().targets {
		if t.Serves(tenant) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// Lookup returns the connector with this name that serves the tenant; false if there is none.
func (r *Registry) Lookup(tenant, name string) (connector.Connector, bool) {
	t, ok := r.snapshot().targets[name]
	if !ok || !t.Serves(tenant) || t.Connector == nil {
		return nil, false
	}
	return t.Connector, true
}

// operation returns a connector that serves a tenant, and one of its operations.
func (r *Registry) operation(tenant, name, operation string) (connector.Connector, connector.Operation, error) {
	c, ok := r.Lookup(tenant, name)
	if failure := r.unready(tenant, name); !ok && failure != nil {
		return nil, connector.Operation{}, gatehouse.E(gatehouse.CodeBusy, "connector %s cannot be used: %s",
			gatehouse.Quote(name), failure.Detail)
	}
	if !ok {
		return nil, connector.Operation{}, gatehouse.Violations{{
			Pointer: "/connector",
			Detail: "names no connector of this tenant: " + gatehouse.Quote(name) +
				knownNames(connector.Names(slices.Values(r.Names(tenant)))),
		}}.Err()
	}
	op, ok := c.Operation(operation)
	if !ok {
		return nil, connector.Operation{}, gatehouse.Violations{{
			Pointer: "/operation",
			Detail: "names no operation of the connector " + gatehouse.Quote(name) + ": " +
				gatehouse.Quote(operation) + otherOperations(c),
		}}.Err()
	}
	return c, op, nil
}

// otherOperations returns the end of an error text that lists the connector's operations; "" if the connector is
// not a [connector.Lister].
func otherOperations(c connector.Connector) string {
	l, ok := c.(connector.Lister)
	if !ok {
		return ""
	}
	names := connector.Names(func(yield func(string) bool) {
		for _, o := range l.List() {
			if !yield(o.Name) {
				return
			}
		}
	})
	return knownNames(names)
}

// knownNames returns the end of an error text that lists names; "" for no names.
func knownNames(names string) string {
	if names == "" {
		return ""
	}
	return "; it has " + names
}

// Describe returns the connector's fingerprint, the lowest risk level that the connector allows for the proposal,
// and how long the target keeps idempotency keys (0 means forever). The error has code invalid if the tenant has
// no such connector or operation, and busy if the connector cannot be used now.
func (r *Registry) Describe(
	tenant string, p *gatehouse.Proposal,
) (fingerprint string, floor gatehouse.RiskLevel, retention time.Duration, err error) {
	c, op, err := r.operation(tenant, p.Connector, p.Operation)
	if err != nil {
		return "", 0, 0, err
	}
	floor = connector.FloorOf(c, op, callOf(&gatehouse.Action{Tenant: tenant, Proposal: *p}, 0))
	return c.Fingerprint(), floor, op.KeyRetention, nil
}

// Reverses reports whether the connector describes how to undo an operation; false for an unknown operation.
func (r *Registry) Reverses(tenant, name, operation string) bool {
	_, op, err := r.operation(tenant, name, operation)
	return err == nil && op.Reverses
}

// Declared returns what is declared about a proposal's operation; nil if the tenant has no such connector or
// operation, or if it cannot be used now.
func (r *Registry) Declared(tenant string, p *gatehouse.Proposal) *gatehouse.Declared {
	c, op, err := r.operation(tenant, p.Connector, p.Operation)
	if err != nil {
		return nil
	}
	return connector.DeclaredOf(c, op, callOf(&gatehouse.Action{Tenant: tenant, Proposal: *p}, 0))
}

// Lane returns the name of the connector if external workers carry out its pushes, and "" if the dispatcher calls
// the connector.
func (r *Registry) Lane(tenant, name string) string {
	c, _ := r.Lookup(tenant, name)
	if _, outside := c.(connector.Outside); outside {
		return name
	}
	return ""
}

// MayLease returns an error with code worker_not_allowed unless a principal may lease the pushes of all the named
// connectors, and with code busy if the newest connectors of the store cannot be loaded here: they may name others.
func (r *Registry) MayLease(ctx context.Context, p *gatehouse.Principal, names []string) error {
	if slices.ContainsFunc(names, r.mayBeOutdated) {
		if err := r.refresh(ctx); err != nil {
			return gatehouse.E(gatehouse.CodeBusy, "the newest connectors of the store cannot be used here").Because(err)
		}
	}
	for _, name := range names {
		c, _ := r.Lookup(p.Tenant, name)
		if o, ok := c.(connector.Outside); ok {
			if err := o.Workers().Permit(p, "the pushes of the connector "+gatehouse.Quote(name)); err != nil {
				return err
			}
		}
	}
	return nil
}

// Class returns the class of an operation. An unknown operation, or an unknown class, counts as class C, which
// allows no second call.
func (r *Registry) Class(tenant, name, operation string) connector.Class {
	_, op, err := r.operation(tenant, name, operation)
	if err != nil || callsOnce(op.Class) {
		return connector.ClassC
	}
	return op.Class
}

// Conditional reports whether the target carries an action out only if its version or pre-image is unchanged; see
// [connector.Conditional].
func (r *Registry) Conditional(a *gatehouse.Action) bool {
	conn, op, err := r.operation(a.Tenant, a.Connector, a.Operation)
	if err != nil {
		return false
	}
	if c, ok := conn.(connector.Conditional); ok {
		return c.Conditional(callOf(a, 0))
	}
	return op.Class == connector.ClassB
}

// retention returns how long the target of an operation keeps idempotency keys; 0 means forever or unknown.
func (r *Registry) retention(tenant, name, operation string) time.Duration {
	_, op, err := r.operation(tenant, name, operation)
	if err != nil {
		return 0
	}
	return op.KeyRetention
}

// Validate returns an error with code invalid if an action can never be carried out. It reads at most descriptions
// of the target, such as a catalogue. The error has code busy if the connector cannot be used now.
func (r *Registry) Validate(a *gatehouse.Action) error {
	c, _, err := r.operation(a.Tenant, a.Connector, a.Operation)
	if err != nil {
		return err
	}
	if v, ok := c.(connector.Validator); ok {
		return redactRefusal(r.redactor(a.Tenant), v.Validate(callOf(a, 0)))
	}
	return nil
}

// Concurrency returns the bound of concurrent calls of a connector in this process; 0 means no bound.
func (r *Registry) Concurrency(name string) int { return r.snapshot().targets[name].Concurrency }

// beginCall records the time of a call that is about to be made. If the target must not be called, beginCall
// returns the failure.
func (r *Registry) beginCall(tenant, name string) *connector.Error {
	if failure := r.unready(tenant, name); failure != nil {
		return failure
	}
	if r.exists(name) {
		r.used.Store(name, time.Now())
	}
	return nil
}

// unready returns the failure of a target that must not be called; nil if it may be called.
func (r *Registry) unready(tenant, name string) *connector.Error {
	t, ok := r.snapshot().targets[name]
	if !ok || !t.Serves(tenant) || t.Unready == nil {
		return nil
	}
	return &connector.Error{
		Kind: connector.NotSent, Code: "secret_missing", Detail: r.RedactText(tenant, t.Unready.Error()),
	}
}

// LastUsed returns when this process last prepared a call or a read of a connector; the zero time if it never did.
func (r *Registry) LastUsed(name string) time.Time {
	at, _ := r.used.Load(name)
	t, _ := at.(time.Time)
	return t
}

// callOf builds the connector call of an action.
func callOf(a *gatehouse.Action, attempt int) connector.Call {
	return connector.Call{
		Tenant: a.Tenant, ActionID: a.ID, IdempotencyKey: a.IdempotencyKey, Digest: a.Digest, Attempt: attempt,
		Operation: a.Operation, Target: a.Target, CurrentState: a.CurrentState, ProposedChange: a.ProposedChange,
	}
}
