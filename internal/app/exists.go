package app

import (
	"context"
	"strconv"

	"github.com/gatehouse-dev/gatehouse"
)

// Exists returns nil when the caller's tenant has the thing, else not_found.
// Kinds are action (an approval's id names its action), push, principal, key,
// session, policy, group and workflow (by name), run and step; of a kind that it does not
// know, everything exists.
func (g *Gate) Exists(ctx context.Context, kind, id string) error {
	return g.view(ctx, kind, func(tx gatehouse.ReadTx, c *gatehouse.Caller) (err error) {
		tenant := c.Principal.Tenant
		switch kind {
		case "action":
			_, err = tx.FindAction(tenant, id)
		case "push":
			_, err = tx.FindPush(tenant, id)
		case "principal":
			_, err = tx.FindPrincipal(tenant, id)
		case "key":
			_, err = tx.FindKeyByID(tenant, id)
		case "session":
			_, err = tx.FindSessionByID(tenant, id)
		case "workflow":
			_, err = tx.FindWorkflow(tenant, id, 0)
		case "run":
			_, err = tx.FindRunHead(tenant, id)
		case "step":
			_, err = tx.FindStep(tenant, id)
		case "group":
			_, err = tx.FindGroup(tenant, id)
		case "policy":
			version, convErr := strconv.Atoi(id)
			if convErr != nil || version < 1 {
				return gatehouse.ErrNotFound
			}
			_, err = tx.FindPolicy(tenant, version)
		}
		return err
	})
}
