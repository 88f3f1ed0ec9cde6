package runs

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/gate"
	"github.com/gatehouse-dev/gatehouse/internal/usecase"
	"github.com/gatehouse-dev/gatehouse/internal/workflow"
)

// ApplyWorkflow stores a source as the next version of a workflow. Neither its author nor the
// starter of a run can decide on the actions that the run proposes.
func (r *Runs) ApplyWorkflow(ctx context.Context, name, source string) (*gatehouse.Workflow, bool, error) {
	c, err := gatehouse.CallerFrom(ctx)
	if err != nil {
		return nil, false, err
	}
	if err := gate.Require(c, gatehouse.RoleOperator); err != nil {
		return nil, false, err
	}

	def, err := parseWorkflow(name, source)
	if err != nil {
		return nil, false, err
	}
	digest := gatehouse.NewDigest(gatehouse.JSON(source))
	changed := false
	by := usecase.Case{By: c}
	out, err := usecase.Perform(ctx, r.Runner, by, func(tx gatehouse.Tx) (*gatehouse.Workflow, error) {
		changed = false
		last, err := tx.FindWorkflow(name, 0)
		switch {
		case errors.Is(err, gatehouse.ErrNotFound):
			last = &gatehouse.Workflow{}
		case err != nil:
			return nil, err
		case last.Digest == digest:
			return last, nil
		}

		out := &gatehouse.Workflow{
			ID: gate.NewID("wfl"), Tenant: c.Principal.Tenant, Name: name, Version: last.Version + 1,
			Workspace: def.Workspace, Description: def.Description, Source: source, Digest: digest,
			CreatedBy: c.Principal.Name, CreatedAt: tx.Now(),
		}
		changed = true
		if err := knownSender(tx, def); err != nil {
			return nil, err
		}
		if err := tx.InsertWorkflow(out); err != nil {
			return nil, err
		}
		if err := ensurePrincipal(tx, c, name); err != nil {
			return nil, err
		}
		if err := schedule(tx, out, def, tx.Now()); err != nil {
			return nil, err
		}
		err = tx.AppendLeaf(&gatehouse.Leaf{
			Tenant: out.Tenant, Type: "workflow.applied", Subject: out.ID, Actor: c.Principal.ID, Digest: digest,
			Data: usecase.Object(map[string]any{"name": name, "version": out.Version}),
		})
		if err != nil {
			return nil, err
		}
		return out, nil
	})
	if err != nil {
		return nil, false, err
	}

	r.forgetLimits()
	r.Hints.Notify(TopicRuns)
	return out, changed, nil
}

// knownSender fails if the webhook names a sender that does not exist.
func knownSender(tx gatehouse.IdentityReader, def *workflow.Definition) error {
	if def.On.Webhook == nil || def.On.Webhook.Sender == "" {
		return nil
	}
	_, err := tx.FindPrincipal(def.On.Webhook.Sender)
	if errors.Is(err, gatehouse.ErrNotFound) {
		detail := "on.webhook.sender: no principal has the name " + gatehouse.Quote(def.On.Webhook.Sender)
		return gatehouse.Violations{{Pointer: "/source", Detail: detail}}.Err()
	}
	return err
}

// parseWorkflow parses a source. Each problem is a violation of the error with code
// invalid, with the pointer "/source" and line and column.
func parseWorkflow(name, source string) (*workflow.Definition, error) {
	if len(source) > gatehouse.MaxWorkflowBytes {
		return nil, gatehouse.E(gatehouse.CodeBodyTooLarge, "a workflow has at most %d bytes", gatehouse.MaxWorkflowBytes)
	}
	def, err := workflow.Parse([]byte(source))
	var problems workflow.Problems
	switch {
	case errors.As(err, &problems):
		var v gatehouse.Violations
		for _, p := range problems {
			v.Add("/source", "%d:%d: %s", p.Line, p.Column, p.Detail)
		}
		return nil, v.Err()
	case err != nil:
		return nil, err
	case def.Name != name:
		var v gatehouse.Violations
		v.Add("/source", "is for the workflow %s, not for %s", gatehouse.Quote(def.Name), gatehouse.Quote(name))
		return nil, v.Err()
	}
	return def, nil
}

// actorName is the name of the principal that proposes the actions of a workflow's
// runs.
func actorName(workflow string) string { return "workflow:" + workflow }

// ensurePrincipal creates the workflow's principal if it does not exist, and sets its sponsor: the
// caller, or the caller's sponsor if the caller is not a person.
func ensurePrincipal(tx gatehouse.Tx, c *gatehouse.Caller, name string) error {
	sponsor := c.Principal.ID
	if c.Principal.Kind != gatehouse.KindPerson {
		sponsor = c.Principal.Sponsor
	}
	p, err := tx.FindPrincipal(actorName(name))
	switch {
	case errors.Is(err, gatehouse.ErrNotFound):
		p = &gatehouse.Principal{
			ID: gate.NewID("prn"), Tenant: c.Principal.Tenant, Name: actorName(name), Kind: gatehouse.KindAgent,
			Roles: []gatehouse.Role{gatehouse.RoleProposer}, Sponsor: sponsor, CreatedAt: tx.Now(),
		}
		p.Person = p.ID
		if err := tx.InsertPrincipal(p); err != nil {
			return err
		}
		return tx.AppendLeaf(&gatehouse.Leaf{
			Tenant: p.Tenant, Type: "principal.created", Subject: p.ID, Actor: c.Principal.ID,
			Data: gatehouse.MustJSON(
				map[string]any{"name": p.Name, "kind": p.Kind, "roles": p.Roles, "sponsor": p.Sponsor, "person": p.Person}),
		})
	case err != nil:
		return err
	case p.Kind != gatehouse.KindAgent || !slices.Contains(p.Roles, gatehouse.RoleProposer):
		return gatehouse.E(gatehouse.CodeAlreadyExists, "the principal %s is not an agent that may propose",
			p.Name).With("name", p.Name)
	case p.Sponsor == sponsor:
		return nil
	}
	p.Sponsor = sponsor
	if err := tx.UpdatePrincipal(p); err != nil {
		return err
	}
	return tx.AppendLeaf(&gatehouse.Leaf{
		Tenant: p.Tenant, Type: "principal.changed", Subject: p.ID, Actor: c.Principal.ID,
		Data: gatehouse.MustJSON(map[string]any{"sponsor": sponsor}),
	})
}

// schedule stores when the workflow's next scheduled run begins. A run of an earlier version that is due, but has not
// begun, stays due: it begins with the new version, if that has a schedule.
func schedule(tx gatehouse.Tx, w *gatehouse.Workflow, def *workflow.Definition, now time.Time) error {
	s := &gatehouse.Schedule{Tenant: w.Tenant, Workflow: w.Name, Version: w.Version}
	if cron := def.On.Schedule; cron != nil {
		s.NextAt = cron.Next(now)
		before, err := tx.ListSchedules(gatehouse.MaxSchedules)
		if err != nil {
			return err
		}
		for _, b := range before {
			if b.Workflow == w.Name && !b.NextAt.After(now) {
				s.NextAt = b.NextAt
			}
		}
	}
	return tx.PutSchedule(s, time.Time{})
}

// FindWorkflow returns a version of a workflow of the caller's tenant with its source.
func (r *Runs) FindWorkflow(ctx context.Context, name string, version int) (w *gatehouse.Workflow, err error) {
	err = r.View(ctx, "workflow", func(tx gatehouse.ReadTx, c *gatehouse.Caller) (err error) {
		w, err = tx.FindWorkflow(name, version)
		return err
	})
	return w, err
}

// summarized is the period over which a workflow's runs are counted.
const summarized = 30 * 24 * time.Hour

// ListWorkflows returns the newest version of each workflow.
func (r *Runs) ListWorkflows(
	ctx context.Context, cursor string, limit int,
) (page gatehouse.Page[*gatehouse.WorkflowSummary], err error) {
	err = r.View(ctx, "workflow", func(tx gatehouse.ReadTx, c *gatehouse.Caller) (err error) {
		page, err = tx.ListWorkflows(tx.Now().Add(-summarized), cursor, limit)
		return err
	})
	return page, err
}

// ListWorkflowVersions returns all versions of a workflow, newest first.
func (r *Runs) ListWorkflowVersions(ctx context.Context, name string) (list []*gatehouse.Workflow, err error) {
	err = r.View(ctx, "workflow", func(tx gatehouse.ReadTx, c *gatehouse.Caller) (err error) {
		if list, err = tx.ListWorkflowVersions(name); err == nil && len(list) == 0 {
			err = fmt.Errorf("workflow %s: %w", name, gatehouse.ErrNotFound)
		}
		return err
	})
	return list, err
}
