package console_test

import (
	"context"
	"net/http"
	"testing"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/console"
)

// connectors are those of a server: shop works, crm lacks a secret.
type connectors struct{}

func (connectors) ListConnectors(context.Context) ([]console.ConnectorInfo, error) {
	return []console.ConnectorInfo{
		{
			Name: "crm", Type: "http", Unready: "secret crm-token is not set",
			Operations: []console.ConnectorOperation{{Operation: "update", Class: "C", Level: 3}},
		},
		{
			Name: "shop", Type: "sql", Open: []string{"update of item: note (L1)"},
			Operations: []console.ConnectorOperation{
				{Operation: "bulk_delete", Class: "A", Level: 5, Reverses: true, EntityTypes: []string{"item"}},
			},
		},
	}, nil
}

func (connectors) TestConnector(_ context.Context, name string) (string, bool, error) {
	switch name {
	case "shop":
		return "", true, nil
	case "crm":
		return "secret crm-token is not set", false, nil
	}
	return "", false, gatehouse.E(gatehouse.CodeNotFound, "no such connector")
}

// TestConnectorsPage: an operator sees what each connector can do and whether it makes
// calls, and has it tested.
func TestConnectorsPage(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	olga, ana := w.signIn("olga", gatehouse.RoleOperator), w.signIn("ana", gatehouse.RoleApprover)
	const path = "/settings/connectors"
	ana.get(path).want(http.StatusForbidden)
	olga.get("/settings").want(http.StatusOK).has(path)
	olga.get(path).want(http.StatusOK).
		has("makes no calls: secret crm-token is not set", "bulk_delete", "<td>L5</td>", "update of item: note (L1)").
		lacks("can be used")
	olga.post(path + "/shop/test").want(http.StatusOK).has("shop can be used: its target answers")
	olga.post(path + "/crm/test").want(http.StatusOK).has("crm cannot be used")
	olga.post(path + "/gone/test").want(http.StatusNotFound)
	ana.post(path + "/shop/test").want(http.StatusForbidden)
}
