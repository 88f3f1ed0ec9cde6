package gate

import (
	"context"
	"slices"
	"strconv"

	"github.com/gatehouse-dev/gatehouse"
)

// Exists returns nil when the caller's tenant has an object with the id, else not_found. Actions,
// pushes, runs, steps and mandates that the caller may not read are not_found too. Kinds are action
// (an approval's id names its action), push, principal (by id or name), key, session, link_key,
// delegation, grant, mandate, device (of the caller), policy and connector_version (by version),
// secret, group and workflow (by name), run and step. For an unknown kind it returns nil.
func (g *Gate) Exists(ctx context.Context, kind, id string) error {
	return g.View(ctx, kind, func(tx gatehouse.ReadTx, c *gatehouse.Caller) (err error) {
		switch kind {
		case "action":
			_, err = g.findAction(tx, c, id)
		case "push":
			err = g.checkMayReadPush(tx, c, id)
		case "principal":
			_, err = tx.FindPrincipal(id)
		case "key":
			_, err = tx.FindKeyByID(id)
		case "session":
			_, err = tx.FindSessionByID(id)
		case "workflow":
			_, err = tx.FindWorkflow(id, 0)
		case "run":
			err = g.CheckMayReadRunID(tx, c, id)
		case "step":
			var step *gatehouse.Step
			if step, err = tx.FindStep(id); err == nil && !c.Principal.Has(gatehouse.RoleWorker) {
				err = g.CheckMayReadRunID(tx, c, step.RunID)
			}
		case "group":
			_, err = tx.FindGroup(id)
		case "link_key":
			var keys []*gatehouse.RingKey
			keys, err = tx.ListRingKeys(gatehouse.RingLinks)
			if err == nil && !slices.ContainsFunc(keys, func(k *gatehouse.RingKey) bool { return k.ID == id }) {
				err = gatehouse.ErrNotFound
			}
		case "secret":
			_, err = tx.FindSecret(id)
		case "delegation":
			_, err = tx.FindDelegation(id)
		case "device":
			_, err = ownDevice(tx, c, id)
		case "grant":
			_, err = tx.FindGrant(id)
		case "mandate":
			_, err = readMandate(tx, c, id)
		case "policy":
			version, convErr := strconv.Atoi(id)
			if convErr != nil || version < 1 {
				return gatehouse.ErrNotFound
			}
			_, err = tx.FindPolicy(version)
		case "connector_version":
			version, convErr := strconv.Atoi(id)
			if convErr != nil || version < 1 {
				return gatehouse.ErrNotFound
			}
			_, err = tx.FindConnectorVersion(version)
		}
		return err
	})
}
