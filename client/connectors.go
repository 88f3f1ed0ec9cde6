package client

import (
	"context"
	"strconv"

	"github.com/gatehouse-dev/gatehouse"
)

var _ gatehouse.ConnectorService = (*Client)(nil)

// ProposeConnectors proposes to replace the connectors in the store.
func (c *Client) ProposeConnectors(ctx context.Context, p gatehouse.ConnectorProposal) (*gatehouse.Action, error) {
	return post[gatehouse.Action](ctx, c, true, "/connector-versions/propose", p)
}

// FindConnectors returns a version of the connectors in the store; 0 is the newest.
func (c *Client) FindConnectors(ctx context.Context, version int) (*gatehouse.ConnectorVersion, error) {
	which := "newest"
	if version > 0 {
		which = strconv.Itoa(version)
	}
	return get[gatehouse.ConnectorVersion](ctx, c, "/connector-versions/"+which, nil)
}

// ListConnectorVersions returns all versions, newest first, without their source.
func (c *Client) ListConnectorVersions(ctx context.Context) ([]*gatehouse.ConnectorVersion, error) {
	return list[*gatehouse.ConnectorVersion](ctx, c, "/connector-versions", nil)
}
