package serve

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/connector"
	"github.com/gatehouse-dev/gatehouse/connector/email"
	"github.com/gatehouse-dev/gatehouse/connector/github"
	httpconn "github.com/gatehouse-dev/gatehouse/connector/http"
	"github.com/gatehouse-dev/gatehouse/connector/jira"
	"github.com/gatehouse-dev/gatehouse/connector/kubernetes"
	mcpconn "github.com/gatehouse-dev/gatehouse/connector/mcp"
	"github.com/gatehouse-dev/gatehouse/connector/netsuite"
	"github.com/gatehouse-dev/gatehouse/connector/salesforce"
	"github.com/gatehouse-dev/gatehouse/connector/servicenow"
	"github.com/gatehouse-dev/gatehouse/connector/slack"
	sqlconn "github.com/gatehouse-dev/gatehouse/connector/sql"
	"github.com/gatehouse-dev/gatehouse/connector/stepfunctions"
	"github.com/gatehouse-dev/gatehouse/connector/stripe"
	workerconn "github.com/gatehouse-dev/gatehouse/connector/worker"
	"github.com/gatehouse-dev/gatehouse/internal/config"
)

// secretOf finds a secret by its name.
type secretOf func(name string) (string, error)

// maker makes a connector from an entry.
type maker func(ctx context.Context, entry config.Connector, secret secretOf) (connector.Connector, error)

// connectorTypes are the makers of the built-in connectors, by the type of an entry.
func connectorTypes() map[string]maker {
	return map[string]maker{
		"email":         of(email.New),
		"github":        of(github.New),
		"jira":          of(jira.New),
		"http":          of(httpconn.New),
		"kubernetes":    of(kubernetes.New),
		"mcp":           of(newMCP),
		"netsuite":      of(netsuite.New),
		"salesforce":    of(salesforce.New),
		"servicenow":    of(servicenow.New),
		"slack":         of(slack.New),
		"sql":           of(sqlconn.New),
		"stepfunctions": of(stepfunctions.New),
		"stripe":        of(stripe.New),
		"worker":        of(newWorker),
	}
}

func newMCP(_ context.Context, c mcpconn.Config, _ func(string) (string, error)) (connector.Connector, error) {
	return mcpconn.New(c)
}

func newWorker(_ context.Context, c workerconn.Config, _ func(string) (string, error)) (connector.Connector, error) {
	return workerconn.New(c)
}

// of makes a maker from a connector's New function and its configuration type.
func of[C any](
	create func(context.Context, C, func(string) (string, error)) (connector.Connector, error),
) maker {
	return func(ctx context.Context, entry config.Connector, secret secretOf) (connector.Connector, error) {
		var c C
		if err := entry.Decode(&c); err != nil {
			return nil, err
		}
		return create(ctx, c, secret)
	}
}

// NewConnector makes the connector of an entry; secret finds a secret by its name.
func NewConnector(ctx context.Context, entry config.Connector, secret secretOf) (connector.Connector, error) {
	types := connectorTypes()
	if create, ok := types[entry.Type]; ok {
		return create(ctx, entry, secret)
	}
	return nil, fmt.Errorf("%s: type must be one of %s, not %s", entry.At(),
		strings.Join(slices.Sorted(maps.Keys(types)), ", "), gatehouse.Quote(entry.Type))
}
