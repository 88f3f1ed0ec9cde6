package dispatch

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/gatehouse-dev/gatehouse/connector"
)

// snapshot returns the current snapshot.
func (r *Registry) snapshot() *registered {
	if s := r.state.Load(); s != nil {
		return s
	}
	return &registered{}
}

// Replace adds targets, or replaces those of the same names, removes the targets that are
// gone, and replaces the list of secrets to redact. Calls in progress keep their connector.
func (r *Registry) Replace(targets []Target, gone, secrets []string) {
	all := maps.Clone(r.snapshot().targets)
	for _, name := range gone {
		delete(all, name)
	}
	for _, t := range targets {
		all[t.Name] = t
	}
	r.state.Store(&registered{targets: all, redactor: connector.NewRedactor(secrets)})
}

// SetRefresh sets the function that reloads the connectors of the store. Its error is the reason
// why this process does not have the stored ones. Call it before dispatching.
func (r *Registry) SetRefresh(refresh func(context.Context) error) { r.refresh = refresh }

// mayBeOutdated reports whether the store may have another connector of the name.
func (r *Registry) mayBeOutdated(name string) bool {
	t, ok := r.snapshot().targets[name]
	return r.refresh != nil && (!ok || t.Stored)
}

// Targets returns all targets by name.
func (r *Registry) Targets() []Target {
	return slices.SortedFunc(maps.Values(r.snapshot().targets), func(a, b Target) int {
		return strings.Compare(a.Name, b.Name)
	})
}

// LastUsed returns when a connector last called its target in this process; the zero
// time for never.
func (r *Registry) LastUsed(name string) time.Time {
	at, _ := r.used.Load(name)
	t, _ := at.(time.Time)
	return t
}

// call records the time of a call that is about to be made. If it must not be made,
// call returns the failure.
func (r *Registry) call(tenant, name string) *connector.Error {
	if failure := r.unready(tenant, name); failure != nil {
		return failure
	}
	r.used.Store(name, time.Now())
	return nil
}

// unready returns the failure of a target that must not be called, nil for others.
func (r *Registry) unready(tenant, name string) *connector.Error {
	t, ok := r.snapshot().targets[name]
	if !ok || !t.Serves(tenant) || t.Unready == nil {
		return nil
	}
	return &connector.Error{Kind: connector.NotSent, Code: "secret_missing", Detail: r.RedactText(t.Unready.Error())}
}

func (r *Registry) redactor() *connector.Redactor { return r.snapshot().redactor }
