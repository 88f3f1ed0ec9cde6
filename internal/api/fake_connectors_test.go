package api

import (
	"context"
	"strconv"

	"github.com/gatehouse-dev/gatehouse"
)

func testConnectors() *gatehouse.ConnectorVersion {
	return &gatehouse.ConnectorVersion{
		Tenant: "default", Version: 1, Source: "connectors: {}\n", SHA256: "ab", AppliedBy: "root", AppliedAt: testTime,
		ActionID: "act_1",
	}
}

func (f *fake) ProposeConnectors(ctx context.Context, p gatehouse.ConnectorProposal) (*gatehouse.Action, error) {
	return use[*gatehouse.Action](ctx, f, "ProposeConnectors", "", p)
}

func (f *fake) FindConnectors(ctx context.Context, version int) (*gatehouse.ConnectorVersion, error) {
	id := ""
	if version > 0 {
		id = strconv.Itoa(version)
	}
	return use[*gatehouse.ConnectorVersion](ctx, f, "FindConnectors", id, version)
}

func (f *fake) ListConnectorVersions(ctx context.Context) ([]*gatehouse.ConnectorVersion, error) {
	return use[[]*gatehouse.ConnectorVersion](ctx, f, "ListConnectorVersions", "")
}
