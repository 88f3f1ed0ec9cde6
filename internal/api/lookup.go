package api

import (
	"context"
	"slices"
	"strconv"
	"strings"

	"github.com/gatehouse-dev/gatehouse"
)

// serviceLookup looks objects up through the services' read methods, where they have one.
type serviceLookup struct{ cfg Config }

func (l serviceLookup) Exists(ctx context.Context, kind, id string) (err error) {
	switch kind {
	case ObjectAction:
		_, err = l.cfg.Actions.FindAction(ctx, id)
	case ObjectRun:
		_, err = l.cfg.Runs.FindRun(ctx, id)
	case ObjectWorkflow:
		_, err = l.cfg.Runs.FindWorkflow(ctx, id, 0)
	case ObjectPrincipal:
		_, err = l.cfg.Admin.FindPrincipal(ctx, id)
	case ObjectGroup:
		_, err = l.cfg.Admin.FindGroup(ctx, id)
	case ObjectPolicy:
		version, convErr := strconv.Atoi(id)
		if convErr != nil || version < 1 {
			return noSuch(kind)
		}
		_, err = l.cfg.Policies.FindPolicy(ctx, version)
	case ObjectConnectorVersion:
		version, convErr := numberOf(id, kind)
		if convErr != nil {
			return convErr
		}
		_, err = l.cfg.Connectors.FindConnectors(ctx, version)
	}
	return err
}

func noSuch(kind string) error { return gatehouse.E(gatehouse.CodeNotFound, "no such %s", kind) }

// resolve replaces a short id in the path with the full one. Only a caller with
// a role for the route learns the candidates.
func (s *Server) resolve(ctx context.Context, rt *route, c *call) error {
	r, ok := s.cfg.Lookup.(Resolver)
	if !ok || rt.object == "" {
		return nil
	}
	id, err := r.Resolve(ctx, rt.object, c.id)
	if gatehouse.CodeOf(err) == gatehouse.CodeAmbiguousID && len(rt.roles) > 0 &&
		!slices.ContainsFunc(rt.roles, c.caller.Principal.Has) {
		return roleRequired(rt)
	}
	if err != nil {
		return err
	}
	c.id = id
	return nil
}

// missing returns the not_found error for the object in the path; nil if the object exists or
// cannot be looked up.
func (s *Server) missing(ctx context.Context, rt *route, id string) error {
	if rt.object == "" {
		return nil
	}
	if err := s.cfg.Lookup.Exists(ctx, rt.object, id); gatehouse.CodeOf(err) == gatehouse.CodeNotFound {
		return gatehouse.E(
			gatehouse.CodeNotFound,
			"no %s %s",
			strings.ReplaceAll(rt.object, "_", " "),
			gatehouse.QuoteWord(id),
		)
	}
	return nil
}
