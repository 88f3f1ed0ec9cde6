package gate

import (
	"cmp"
	"encoding/json"
	"errors"
	"slices"

	"github.com/gatehouse-dev/gatehouse"
)

// ReadsAs returns p's id if p may read only its own objects; "" if p may read the whole tenant.
// An agent's own objects are what it proposed or started, the actions, child runs and retries of
// its runs, and the revisions of its actions. The configuration can let agents read the whole
// tenant. A principal whose only role is worker sees what it leases, and reads nothing else.
func (g *Gate) ReadsAs(p *gatehouse.Principal) string {
	if onlyWorker(p) || p.Kind == gatehouse.KindAgent && !g.config.AgentsSeeTenant {
		return p.ID
	}
	return ""
}

func onlyWorker(p *gatehouse.Principal) bool {
	return !slices.ContainsFunc(p.Roles, func(r gatehouse.Role) bool { return r != gatehouse.RoleWorker })
}

// mayRead returns ErrNotFound when the caller may not read the action or run with
// that id, which the principal owner proposed or started.
func (g *Gate) mayRead(tx gatehouse.IdentityReader, c *gatehouse.Caller, id, owner string) error {
	as := g.ReadsAs(c.Principal)
	if as == "" || as == owner {
		return nil
	}
	inherited, err := tx.Inherited(as, id)
	if err == nil && !inherited {
		err = gatehouse.ErrNotFound
	}
	return err
}

// findAction is tx.FindAction, limited to what the caller may read.
func (g *Gate) findAction(tx objectReader, c *gatehouse.Caller, id string) (*gatehouse.Action, error) {
	a, err := tx.FindAction(id)
	if err == nil {
		err = g.mayRead(tx, c, a.ID, a.ProposerID)
	}
	if err != nil {
		return nil, err
	}
	return a, nil
}

// CheckMayReadRun returns nil when the caller may read the run.
func (g *Gate) CheckMayReadRun(tx gatehouse.IdentityReader, c *gatehouse.Caller, run *gatehouse.Run) error {
	return g.mayRead(tx, c, run.ID, run.StarterID)
}

// CheckMayReadRunID is CheckMayReadRun by the run's id.
func (g *Gate) CheckMayReadRunID(tx objectReader, c *gatehouse.Caller, id string) error {
	run, err := tx.FindRunHead(id)
	if err != nil {
		return err
	}
	return g.CheckMayReadRun(tx, c, run)
}

// checkMayReadPush returns nil when the caller may read the push. For workers, the use case
// itself checks the lease.
func (g *Gate) checkMayReadPush(tx gatehouse.ReadTx, c *gatehouse.Caller, id string) error {
	p, err := tx.FindPush(id)
	if err != nil || g.ReadsAs(c.Principal) == "" || c.Principal.Has(gatehouse.RoleWorker) {
		return err
	}
	_, err = g.findAction(tx, c, p.ActionID)
	return err
}

// ownEntries scans the log for entries about the actions and runs that the caller
// may read.
func (g *Gate) ownEntries(
	tx gatehouse.ReadTx, c *gatehouse.Caller, from int64, limit int,
) (list []*gatehouse.Entry, err error) {
	known := make(map[string]bool)
	for len(list) < limit {
		batch, err := tx.ListEntries(from, gatehouse.MaxLimit)
		if err != nil || len(batch) == 0 {
			return list, err
		}
		for _, e := range batch {
			from = e.Index + 1
			var leaf struct {
				Subject  string `json:"subject"`
				ActionID string `json:"action_id"`
			}
			if err := json.Unmarshal([]byte(e.Body), &leaf); err != nil {
				return nil, err
			}
			id := cmp.Or(leaf.ActionID, leaf.Subject)
			own, seen := known[id]
			if !seen {
				if own, err = g.ownObject(tx, c, id); err != nil {
					return nil, err
				}
				known[id] = own
			}
			if own && len(list) < limit {
				list = append(list, e)
			}
		}
	}
	return list, nil
}

// ownObject reports whether the id is that of an action or run that the caller may read.
func (g *Gate) ownObject(tx objectReader, c *gatehouse.Caller, id string) (bool, error) {
	_, err := g.findAction(tx, c, id)
	if errors.Is(err, gatehouse.ErrNotFound) {
		err = g.CheckMayReadRunID(tx, c, id)
	}
	if errors.Is(err, gatehouse.ErrNotFound) {
		return false, nil
	}
	return err == nil, err
}
