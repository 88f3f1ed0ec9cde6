package console

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/gatehouse-dev/gatehouse"
)

const connectorsPath = "/settings/connectors"

// ConnectorInfo is a connector of the server's configuration.
type ConnectorInfo struct {
	Name, Type string
	// Stored says that the connector is configured in the store, and not in the file.
	Stored bool
	// Unready is the reason why the connector makes no calls, such as a missing secret; "" for none.
	Unready    string
	Operations []ConnectorOperation
	// Levels lists the operations and fields with a declared level, with that level.
	Levels []string
}

// ConnectorOperation is an operation that a proposal can name.
type ConnectorOperation struct {
	Operation string `json:"operation"`
	Class     string `json:"class"`
	// Level is the lowest risk level of a change that has no field with a declared level.
	Level int `json:"level"`
	// Levels are the declared levels of the operation and of its fields.
	Levels   []string `json:"levels"`
	Reverses bool     `json:"reverses"`
	// Amounts are the declared amounts of money, such as "/amount in /currency".
	Amounts []string `json:"amounts"`
	// EntityTypes are the entity types that the operation accepts; empty if it accepts every type.
	EntityTypes []string `json:"entity_types"`
}

// Connectors is the part of the connector service that the console uses.
type Connectors interface {
	// ListConnectors returns the connectors that serve the caller's tenant, by name.
	ListConnectors(ctx context.Context) ([]ConnectorInfo, error)
	// TestConnector makes a test call that does not change the target. shown is the result of the call,
	// problem the reason why the connector cannot be used. Both are empty for a connector without a test call.
	TestConnector(ctx context.Context, name string) (shown, problem string, err error)
	// ConnectorStatus tells about the connectors in the store.
	ConnectorStatus() ConnectorStatus
	// ConnectorKeys are the keys of a type, nil for an unknown type.
	ConnectorKeys(kind string) []ConnectorKey
	// ConnectorEntry finds the entry with a name in a text of connectors.
	ConnectorEntry(source, name string) (ConnectorEntry, error)
	// EditConnectors replaces or adds an entry in a text of connectors; an entry without a type removes
	// the connector with its name.
	EditConnectors(source string, e ConnectorEntry) (string, error)
	// TryConnector makes the test call of a connector in a text that is not stored yet. The caller must be
	// permitted to propose the text, and base must be the newest stored version. A secret is sent, and an address
	// inside the network is called, only if a connector in use has the same connection.
	TryConnector(ctx context.Context, source string, base int, name string) (ConnectorTrial, error)
}

func (c *Console) connectorRoutes() []route {
	if c.cfg.Connectors == nil {
		return nil
	}
	people := []gatehouse.Role{gatehouse.RoleOperator, gatehouse.RoleAdmin}
	admins := []gatehouse.Role{gatehouse.RoleAdmin}
	return []route{
		{pattern: "GET " + connectorsPath, roles: people, handle: c.connectors},
		{pattern: "POST " + connectorsPath + "/{connector}/test", roles: people, handle: c.testConnector},
		{pattern: "POST " + connectorRowsPath, roles: admins, handle: c.changeRows},
		{pattern: "POST " + connectorTryPath, roles: admins, changesRights: true, handle: c.tryConnector},
		{pattern: "GET " + connectorsPath + "/new", roles: admins, handle: c.newConnector},
		{pattern: "GET " + connectorsPath + "/{connector}/edit", roles: admins, handle: c.editConnector},
		{pattern: "POST " + connectorsPath, roles: admins, changesRights: true, handle: c.proposeConnector},
		{
			pattern: "POST " + connectorsPath + "/{connector}/remove", roles: admins, changesRights: true,
			handle: c.removeConnector,
		},
	}
}

// listedConnector is a connector with its state at the dispatcher.
type listedConnector struct {
	ConnectorInfo
	// health is nil for a connector that the dispatcher does not know.
	health *gatehouse.ConnectorHealth
	// last is the newest dead letter, nil for none.
	last *gatehouse.DeadLetter
}

type connectorsPage struct {
	rows []listedConnector
	// tested is the connector that was just tested, "" for none; shown and problem are the outcome.
	tested, shown, problem string
	status                 ConnectorStatus
}

func (c *Console) connectors(v *view) error { return c.showConnectors(v, &connectorsPage{}) }

func (c *Console) testConnector(v *view) error {
	if err := v.parse(); err != nil {
		return err
	}
	p := &connectorsPage{tested: v.r.PathValue("connector")}
	var err error
	if p.shown, p.problem, err = c.cfg.Connectors.TestConnector(v.ctx, p.tested); err != nil {
		return err
	}
	return c.showConnectors(v, p)
}

func (c *Console) showConnectors(v *view, p *connectorsPage) error {
	p.status = c.cfg.Connectors.ConnectorStatus()
	list, err := c.cfg.Connectors.ListConnectors(v.ctx)
	if err != nil {
		return err
	}
	health, err := c.cfg.Dispatch.DispatchHealth(v.ctx)
	if err != nil {
		return err
	}
	for _, info := range list {
		row := listedConnector{ConnectorInfo: info}
		for i := range health.Connectors {
			if x := &health.Connectors[i]; x.Connector == info.Name {
				row.health = x
			}
		}
		dead, err := c.cfg.Dispatch.ListDeadLetters(v.ctx, gatehouse.DeadLetterFilter{Connector: info.Name, Limit: 1})
		if err != nil {
			return err
		}
		if len(dead.Items) > 0 {
			row.last = dead.Items[0]
		}
		p.rows = append(p.rows, row)
	}
	return v.render(http.StatusOK, "Connectors", settingsPath, connectorsBody(v, p))
}

func connectorTestPath(name string) string {
	return connectorsPath + "/" + url.PathEscape(name) + "/test"
}

// deadLettersOf leads to the dead letters of a connector.
func deadLettersOf(name string) string {
	return "/dispatch?" + url.Values{"connector": {name}}.Encode()
}

func (r *listedConnector) stopped() bool {
	return r.health != nil && r.health.Breaker.State != gatehouse.BreakerClosed
}

// source says where a connector is configured.
func (p *connectorsPage) source(r *listedConnector) string {
	if r.Stored {
		return fmt.Sprintf("from the store, version %d", p.status.Running)
	}
	return "from the file"
}

// state says whether a connector makes calls; tone is the colour of the text.
func (r *listedConnector) state() (text, tone string) {
	switch {
	case r.Unready != "":
		return "makes no calls: " + r.Unready, "tone-bad"
	case r.stopped():
		return "calls are stopped", "tone-bad"
	}
	return "makes calls", "tone-good"
}

func entityTypes(o ConnectorOperation) string {
	if len(o.EntityTypes) == 0 {
		return "any"
	}
	return strings.Join(o.EntityTypes, ", ")
}
