package serve

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/connector"
	"github.com/gatehouse-dev/gatehouse/internal/config"
	"github.com/gatehouse-dev/gatehouse/internal/dispatch"
	"github.com/gatehouse-dev/gatehouse/internal/policy"
)

// ungatedChanges describes, one sentence each, the changes that agents can make without
// a person: those that the targets' configuration declares below L3 and the policy of a tenant
// allows. policies has the policy of each tenant; a nil policy allows no change.
func ungatedChanges(targets []dispatch.Target, policies map[string]*policy.Policy) []string {
	var out []string
	sorted := slices.SortedFunc(slices.Values(targets), func(a, b dispatch.Target) int {
		return strings.Compare(a.Name, b.Name)
	})
	for _, t := range sorted {
		d, ok := t.Connector.(connector.Declarer)
		if !ok {
			continue
		}
		for _, tenant := range slices.Sorted(maps.Keys(policies)) {
			if p := policies[tenant]; p != nil && t.Serves(tenant) {
				out = append(out, opened(t.Name, tenant, d.Declarations(), p)...)
			}
		}
	}
	return out
}

// opened describes the changes that one policy leaves open at one target, with one sentence for each pair of an
// operation and an entity type, which also names the open fields. An operation that is declared several times, as
// by the projects of jira, is named with its highest open level.
func opened(target, tenant string, declared []connector.Declaration, p *policy.Policy) []string {
	type place struct{ operation, entity string }
	type finding struct {
		// whole is the declaration for the operation itself; its Level is 0 if only fields are open.
		whole   connector.Declaration
		fields  []string
		opening policy.Opening
	}
	var order []place
	found := make(map[place]*finding)
	for _, d := range declared {
		as, open := p.Opens(policy.Facts{Tenant: tenant, Floor: d.Level, Proposal: &gatehouse.Proposal{
			Connector: target, Operation: d.Operation, Target: gatehouse.Target{EntityType: d.EntityType},
		}})
		if !open {
			continue
		}
		at := place{d.Operation, d.EntityType}
		f := found[at]
		if f == nil {
			f = &finding{opening: as}
			found[at] = f
			order = append(order, at)
		}
		f.opening.Sure = f.opening.Sure && as.Sure
		switch {
		case d.Field != "":
			f.fields = append(f.fields, fmt.Sprintf("%s (%s)", d.Field, d.Level))
		case d.Level > f.whole.Level:
			f.whole, f.opening.As = d, as.As
		}
	}
	out := make([]string, len(order))
	for i, at := range order {
		f := found[at]
		what := fmt.Sprintf("connector %s: %s", target, at.operation)
		if at.entity != "" {
			what += " of " + at.entity
		} else if f.whole.AnyEntity {
			what += " of any entity type"
		}
		verb := "allows"
		if !f.opening.Sure {
			verb = "can allow"
		}
		fields := "changes of " + strings.Join(f.fields, ", ")
		switch {
		case f.whole.Level == 0:
			what += ": the policy " + verb + " " + fields
		case len(f.fields) > 0: // each field is named with its own level
			what += fmt.Sprintf(" (%s): the policy %s it, and %s,", f.whole.Level, verb, fields)
		default:
			what += fmt.Sprintf(" (%s): the policy %s it", f.whole.Level, verb)
		}
		out[i] = fmt.Sprintf("%s without a person in tenant %s, for instance as %s", what, tenant, f.opening.As)
	}
	return out
}

// ungatedByActivePolicies describes the changes that the active policies of the store leave ungated.
func (n *Node) ungatedByActivePolicies(ctx context.Context) ([]string, error) {
	policies, err := n.Gate.ActivePolicies(ctx)
	if err != nil {
		return nil, err
	}
	return ungatedChanges(n.Registry.Targets(), policies), nil
}

// warnOpen logs the sentences of ungatedByActivePolicies, at the start of a server.
func (n *Node) warnOpen(ctx context.Context) {
	open, err := n.ungatedByActivePolicies(ctx)
	if err != nil && ctx.Err() == nil {
		n.Log.ErrorContext(ctx, "the changes that need no approval cannot be determined", "error", err)
	}
	for _, sentence := range open {
		n.Log.WarnContext(ctx, sentence)
	}
}

// ungatedByConfig describes the changes that agents can make without a person. active has the store's active policies
// by tenant; a tenant without one is judged by the configured first policy. ungatedByConfig calls no target.
func ungatedByConfig(ctx context.Context, cfg *config.Config, active map[string]*policy.Policy) ([]string, error) {
	source, err := firstPolicy(cfg)
	if err != nil {
		return nil, err
	}
	first, err := policy.Parse(source)
	if err != nil {
		return nil, err
	}
	n := &Node{config: cfg, secrets: newStoreSecrets(cfg, slog.New(slog.DiscardHandler))}
	if n.targets, err = n.connectors(ctx); err != nil {
		return nil, errors.Join(err, n.Close())
	}
	policies := map[string]*policy.Policy{gatehouse.DefaultTenant: first}
	for _, t := range n.targets {
		for _, tenant := range t.Tenants {
			if tenant != dispatch.AllTenants {
				policies[tenant] = first
			}
		}
	}
	maps.Copy(policies, active)
	return ungatedChanges(n.targets, policies), n.Close()
}

// firstPolicy is the source of the policy that a tenant without one gets.
func firstPolicy(cfg *config.Config) ([]byte, error) {
	if cfg.Policy.File == "" {
		return policy.DefaultSource(), nil
	}
	source, err := os.ReadFile(cfg.Policy.File)
	if err != nil {
		return nil, fmt.Errorf("policy: %w", err)
	}
	return source, nil
}
