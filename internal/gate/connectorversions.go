package gate

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/usecase"
)

// ConnectorOperation identifies actions of the connector [PolicyConnector] that replace
// the connectors in the store. Only [Gate.ProposeConnectors], the reversal of such an
// action, and [Gate.Undo] propose them.
const ConnectorOperation = "configure"

// noConnectors is the source of a version without connectors.
const noConnectors = "connectors: {}\n"

var _ gatehouse.ConnectorService = (*Gate)(nil)

// ProposeConnectors proposes to replace the connectors in the store: an L4 action that
// shows the difference. The digest covers both texts and the number of the version that
// is replaced.
func (g *Gate) ProposeConnectors(ctx context.Context, r gatehouse.ConnectorProposal) (*gatehouse.Action, error) {
	c, err := g.adminWithStepUp(ctx)
	if err != nil {
		return nil, err
	}
	if err := requireServerTenant(c); err != nil {
		return nil, err
	}
	if err := r.Validate(); err != nil {
		return nil, err
	}
	if err := g.checkConnectors(ctx, r.Source); err != nil {
		return nil, err
	}
	newest, err := g.newestConnectors(ctx)
	if err != nil {
		return nil, err
	}
	if r.Base != nil && *r.Base != newest.Version {
		return nil, gatehouse.E(gatehouse.CodeTargetChanged,
			"version %d of the connectors was stored meanwhile; the text was made from version %d", newest.Version,
			*r.Base)
	}
	if newest.Source == r.Source {
		return nil, gatehouse.Violations{{Pointer: "/source", Detail: "is the newest version already"}}.Err()
	}
	p := &gatehouse.Proposal{
		ActionType: "connector_change", Connector: PolicyConnector, Operation: ConnectorOperation,
		Target:         connectorTarget(newest.Version),
		CurrentState:   gatehouse.MustJSON(sourceText{newest.Source}),
		ProposedChange: gatehouse.MustJSON(sourceText{r.Source}),
		Rationale:      r.Rationale,
	}
	a, _, err := g.propose(ctx, c, p, lineage{revision: 1, own: true})
	return a, err
}

// RequireConnectorTester fails unless the caller may test connectors that are not stored: only callers who may
// propose connectors may test them.
func (g *Gate) RequireConnectorTester(ctx context.Context) error {
	c, err := g.adminWithStepUp(ctx)
	if err != nil {
		return err
	}
	return requireServerTenant(c)
}

func connectorTarget(version int) gatehouse.Target {
	return gatehouse.Target{
		EntityType: "connectors", EntityRef: gatehouse.DefaultTenant, Version: strconv.Itoa(version),
	}
}

// requireServerTenant fails unless the caller is of the tenant whose administrators run the
// server: a connector can reach whatever the server reaches.
func requireServerTenant(c *gatehouse.Caller) error {
	if c.Principal.Tenant == gatehouse.DefaultTenant {
		return nil
	}
	return gatehouse.E(gatehouse.CodeRoleRequired, "the connectors in the store are for the tenant %s",
		gatehouse.DefaultTenant)
}

// checkConnectors fails with code invalid if this server cannot build connectors from the text.
func (g *Gate) checkConnectors(ctx context.Context, source string) error {
	if g.config.CheckConnectors == nil {
		return gatehouse.E(gatehouse.CodeUnsupported, "this server keeps no connectors in its store")
	}
	if err := g.config.CheckConnectors(ctx, source); err != nil {
		return gatehouse.Violations{{Pointer: "/source", Detail: err.Error()}}.Err()
	}
	return nil
}

// newestConnectors returns the newest version; if there is none, version 0 without text.
func (g *Gate) newestConnectors(ctx context.Context) (v *gatehouse.ConnectorVersion, err error) {
	err = g.Store.View(ctx, gatehouse.DefaultTenant, func(tx gatehouse.ReadTx) (err error) {
		v, err = newestConnectors(tx)
		return err
	})
	return v, err
}

func newestConnectors(tx gatehouse.ConnectorVersionReader) (*gatehouse.ConnectorVersion, error) {
	n, err := tx.ConnectorVersion()
	if err != nil || n == 0 {
		return &gatehouse.ConnectorVersion{Tenant: gatehouse.DefaultTenant}, err
	}
	return tx.FindConnectorVersion(n)
}

// StoreConnectors stores the connectors of an approved action as the next version, once:
// a repeated call for the same action returns the earlier result. from is the version
// that is replaced; when it is not the newest, the error has code target_changed, and
// nothing changes.
func (g *Gate) StoreConnectors(
	ctx context.Context, actionID string, change gatehouse.JSON, from string,
) (version int, err error) {
	var text sourceText
	if err := json.Unmarshal([]byte(change), &text); err != nil {
		return 0, gatehouse.E(gatehouse.CodeInvalid, "the change holds no connectors")
	}
	stored := func(tx gatehouse.ReadTx) (newest int, err error) {
		version = 0
		list, err := tx.ListConnectorVersions()
		for _, v := range list {
			newest = max(newest, v.Version)
			if v.ActionID == actionID {
				version = v.Version
			}
		}
		return newest, err
	}
	err = g.Store.View(ctx, gatehouse.DefaultTenant, func(tx gatehouse.ReadTx) error {
		_, err := stored(tx)
		return err
	})
	if err != nil || version > 0 {
		return version, err
	}
	if err := g.checkConnectors(ctx, text.Source); err != nil {
		return 0, err
	}
	err = g.Update(ctx, gatehouse.DefaultTenant, nil, func(tx gatehouse.Tx) error {
		newest, err := stored(tx)
		if err != nil || version > 0 {
			return err
		}
		if strconv.Itoa(newest) != from {
			return gatehouse.E(gatehouse.CodeTargetChanged, "version %d is stored, not %s", newest, from)
		}
		a, err := tx.FindAction(actionID)
		if err != nil {
			return err
		}
		sum := sha256.Sum256([]byte(text.Source))
		v := &gatehouse.ConnectorVersion{
			Tenant: a.Tenant, Version: newest + 1, Source: text.Source, SHA256: hex.EncodeToString(sum[:]),
			AppliedBy: a.ProposedBy, AppliedAt: tx.Now(), ActionID: actionID,
		}
		if err := tx.InsertConnectorVersion(v); err != nil {
			return err
		}
		version = v.Version
		by := author{id: a.ProposerID, name: a.ProposedBy, tenant: a.Tenant, via: a.DecidedVia}
		return recordChange(tx, by, connectorsChange(v))
	})
	if errors.Is(err, gatehouse.ErrConflict) {
		err = gatehouse.E(gatehouse.CodeTargetChanged, "another version was stored at the same time")
	}
	if err == nil {
		g.Hints.Notify(usecase.TopicConnectors)
	}
	return version, err
}

// connectorsChange is the log entry of a new version.
func connectorsChange(v *gatehouse.ConnectorVersion) change {
	return change{
		tenant: v.Tenant, kind: "connectors.applied", subject: fmt.Sprintf("connectors:%d", v.Version),
		name: fmt.Sprintf("version %d of the connectors", v.Version), detail: "approved as " + v.ActionID,
		data: map[string]any{"version": v.Version, "sha256": v.SHA256, "action": v.ActionID},
	}
}

// StoredConnectors returns a version for this process itself; 0 is the newest. Without
// any version it returns version 0.
func (g *Gate) StoredConnectors(ctx context.Context, version int) (v *gatehouse.ConnectorVersion, err error) {
	if version == 0 {
		return g.newestConnectors(ctx)
	}
	err = g.Store.View(ctx, gatehouse.DefaultTenant, func(tx gatehouse.ReadTx) (err error) {
		v, err = tx.FindConnectorVersion(version)
		return err
	})
	return v, err
}

// NewestConnectors returns the number of the newest version; 0 for none.
func (g *Gate) NewestConnectors(ctx context.Context) (version int, err error) {
	err = g.Store.View(ctx, gatehouse.DefaultTenant, func(tx gatehouse.ReadTx) (err error) {
		version, err = tx.ConnectorVersion()
		return err
	})
	return version, err
}

// requireConnectorReader fails for callers who may not read the connectors in the store.
func requireConnectorReader(c *gatehouse.Caller) error {
	if err := Require(c, gatehouse.RoleOperator, gatehouse.RoleAdmin); err != nil {
		return err
	}
	return requireServerTenant(c)
}

// FindConnectors returns a version; 0 is the newest. Only the tenant default has versions.
func (g *Gate) FindConnectors(ctx context.Context, version int) (v *gatehouse.ConnectorVersion, err error) {
	err = g.View(ctx, "version of the connectors", func(tx gatehouse.ReadTx, c *gatehouse.Caller) (err error) {
		if err := Require(c, gatehouse.RoleOperator, gatehouse.RoleAdmin); err != nil {
			return err
		}
		if version > 0 {
			v, err = tx.FindConnectorVersion(version)
			return err
		}
		if v, err = newestConnectors(tx); err == nil && v.Version == 0 {
			err = gatehouse.E(gatehouse.CodeNotFound, "the store has no connectors of this tenant")
		}
		return err
	})
	return v, err
}

// ListConnectorVersions returns all versions, newest first, without their source.
func (g *Gate) ListConnectorVersions(ctx context.Context) (list []*gatehouse.ConnectorVersion, err error) {
	err = g.View(ctx, "version of the connectors", func(tx gatehouse.ReadTx, c *gatehouse.Caller) (err error) {
		if err := requireConnectorReader(c); err != nil {
			return err
		}
		list, err = tx.ListConnectorVersions()
		return err
	})
	return list, err
}

// UndoConnectors describes how to return to the version before a stored one.
func UndoConnectors(current, change gatehouse.JSON, version int) *gatehouse.Reversal {
	var former sourceText
	if err := json.Unmarshal([]byte(current), &former); err != nil {
		return nil
	}
	if former.Source == "" {
		former.Source = noConnectors
	}
	return &gatehouse.Reversal{
		Operation: ConnectorOperation, Target: connectorTarget(version), CurrentState: change,
		ProposedChange: gatehouse.MustJSON(former),
	}
}
