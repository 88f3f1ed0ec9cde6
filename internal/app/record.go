package app

import (
	"slices"

	"github.com/gatehouse-dev/gatehouse"
)

// record appends the leaf of one transition of an action.
func record(tx gatehouse.Tx, a *gatehouse.Action, event, actor string, from, to gatehouse.Status, data map[string]any) error {
	l := &gatehouse.Leaf{
		Tenant: a.Tenant, Type: event, Subject: a.ID, ActionID: a.ID, Actor: actor,
		From: string(from), To: string(to), Digest: a.Digest,
	}
	if len(data) > 0 {
		l.Data = gatehouse.MustJSON(data)
	}
	return tx.AppendLeaf(l)
}

func union(a, b []string) []string {
	all := slices.Concat(a, b)
	slices.Sort(all)
	return slices.Compact(all)
}
