package mcp

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/gatehouse-dev/gatehouse"
)

// identify asks the gate for the agent of a client's key. The agent must be able to propose and, without a worker, to
// execute.
func (c *Config) identify(ctx context.Context, gate Gate) (*gatehouse.Principal, error) {
	me, err := gate.WhoAmI(ctx)
	if err != nil {
		return nil, fmt.Errorf("look up the key at the gate: %w", err)
	}
	roles := []gatehouse.Role{gatehouse.RoleProposer}
	if c.Worker == nil {
		roles = append(roles, gatehouse.RoleWorker)
	}
	for _, role := range roles {
		if !slices.Contains(me.Roles, role) {
			return nil, fmt.Errorf("%s %w %s: a proxy needs proposer and, without a worker's key, worker",
				me.Name, errRoles, role)
		}
	}
	return me, nil
}

// CheckWorker returns an error unless the worker, if there is one, can execute actions of a tenant; "" stands for any
// tenant.
func (c *Config) CheckWorker(ctx context.Context, tenant string) error {
	if c.Worker == nil {
		return nil
	}
	worker, err := c.Worker.WhoAmI(ctx)
	switch {
	case err != nil:
		return fmt.Errorf("%w: %w", errWorker, err)
	case !slices.Contains(worker.Roles, gatehouse.RoleWorker):
		return fmt.Errorf("%w: %s lacks the role worker", errWorker, worker.Name)
	case tenant != "" && worker.Tenant != tenant:
		return errTenant
	}
	return nil
}

// executor returns the client that leases actions and reports their outcomes.
func (c *Config) executor() Gate {
	if c.Worker != nil {
		return c.Worker
	}
	return c.Gate
}

var (
	errRoles  = errors.New("lacks the role")
	errWorker = errors.New("the worker's key cannot be used")
)
