package gate

import (
	"slices"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/usecase"
)

// record appends the leaf of one transition of an action.
func record(tx gatehouse.LogWriter, a *gatehouse.Action, event, actor string, from, to gatehouse.Status,
	data map[string]any) error {
	if len(data) == 0 {
		return recordData(tx, a, event, actor, from, to, "")
	}
	return recordData(tx, a, event, actor, from, to, usecase.Object(data))
}

func recordData(tx gatehouse.LogWriter, a *gatehouse.Action, event, actor string, from, to gatehouse.Status,
	data gatehouse.JSON) error {
	return tx.AppendLeaf(leafOf(a, event, actor, from, to, data))
}

func leafOf(
	a *gatehouse.Action, event, actor string, from, to gatehouse.Status, data gatehouse.JSON,
) *gatehouse.Leaf {
	return &gatehouse.Leaf{
		Tenant: a.Tenant, Type: event, Subject: a.ID, ActionID: a.ID, Actor: actor,
		From: string(from), To: string(to), Digest: a.Digest, Data: data,
	}
}

func union(a, b []string) []string {
	all := slices.Concat(a, b)
	slices.Sort(all)
	return slices.Compact(all)
}
