package gate

import (
	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/usecase"
)

// record appends the leaf of one transition of an action.
func record(tx gatehouse.LogWriter, a *gatehouse.Action, event, actor string, from, to gatehouse.Status,
	data map[string]any) error {
	var object gatehouse.JSON
	if len(data) > 0 {
		object = usecase.Object(data)
	}
	return tx.AppendLeaf(leafOf(a, event, actor, from, to, object))
}

// leafOf is the leaf of one transition of an action.
func leafOf(
	a *gatehouse.Action, event, actor string, from, to gatehouse.Status, data gatehouse.JSON,
) *gatehouse.Leaf {
	return &gatehouse.Leaf{
		Tenant: a.Tenant, Type: event, Subject: a.ID, ActionID: a.ID, Actor: actor,
		From: string(from), To: string(to), Digest: a.Digest, Data: data,
	}
}
