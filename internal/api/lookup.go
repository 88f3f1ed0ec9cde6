package api

import (
	"context"
	"slices"
	"strings"

	"github.com/gatehouse-dev/gatehouse"
)

// resolve replaces a short id in the path with the full one. Only a caller with
// a role for the route learns the candidates.
func (s *Server) resolve(ctx context.Context, rt *route, c *call) error {
	if rt.object == "" {
		return nil
	}
	id, err := s.cfg.Lookup.Resolve(ctx, rt.object, c.id)
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
