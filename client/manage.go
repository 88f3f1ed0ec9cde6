package client

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/gatehouse-dev/gatehouse"
)

// ListPushes returns a page of pushes.
func (c *Client) ListPushes(ctx context.Context, f gatehouse.PushFilter) (gatehouse.Page[*gatehouse.Push], error) {
	q := paging(f.Cursor, f.Limit)
	set(q, "status", string(f.Status))
	return page[*gatehouse.Push](ctx, c, "/pushes", q)
}

// ListBreakers lists the connectors with the states of their circuit breakers.
func (c *Client) ListBreakers(ctx context.Context) ([]gatehouse.BreakerState, error) {
	return list[gatehouse.BreakerState](ctx, c, "/connectors", nil)
}

// DispatchHealth returns the health of the connectors and of the queue.
func (c *Client) DispatchHealth(ctx context.Context) (*gatehouse.DispatchHealth, error) {
	return get[gatehouse.DispatchHealth](ctx, c, "/pushes/health", nil)
}

// Drain lists the due pushes or, when DryRun is false, sends them.
func (c *Client) Drain(ctx context.Context, r gatehouse.DrainRequest) (*gatehouse.DrainAnswer, error) {
	return post[gatehouse.DrainAnswer](ctx, c, false, "/pushes/drain", r)
}

// ListDeadLetters returns a page of the pushes that need a person.
func (c *Client) ListDeadLetters(
	ctx context.Context, f gatehouse.DeadLetterFilter,
) (gatehouse.Page[*gatehouse.DeadLetter], error) {
	q := paging(f.Cursor, f.Limit)
	set(q, "group", f.Group)
	selectDeadLetters(q, f)
	return page[*gatehouse.DeadLetter](ctx, c, "/dead-letters", q)
}

// GroupDeadLetters groups, by error, the pushes that need a person.
func (c *Client) GroupDeadLetters(
	ctx context.Context, f gatehouse.DeadLetterFilter,
) (*gatehouse.DeadLetterGroups, error) {
	q := url.Values{}
	selectDeadLetters(q, f)
	return get[gatehouse.DeadLetterGroups](ctx, c, "/dead-letters/groups", q)
}

func selectDeadLetters(q url.Values, f gatehouse.DeadLetterFilter) {
	set(q, "connector", f.Connector)
	set(q, "code", f.Code)
	set(q, "status", string(f.Status))
	if f.Since != nil {
		set(q, "since", f.Since.UTC().Format(time.RFC3339Nano))
	}
}

// DiscardDeadLetters closes failed pushes permanently.
func (c *Client) DiscardDeadLetters(
	ctx context.Context, r gatehouse.DiscardRequest,
) (*gatehouse.DeadLetterAnswer, error) {
	return post[gatehouse.DeadLetterAnswer](ctx, c, true, "/dead-letters/discard", r)
}

// ResolveDeadLetters records the outcomes of several unknown pushes.
func (c *Client) ResolveDeadLetters(
	ctx context.Context, r gatehouse.ResolveRequest,
) (*gatehouse.DeadLetterAnswer, error) {
	return post[gatehouse.DeadLetterAnswer](ctx, c, true, "/dead-letters/resolve", r)
}

// ReplayDeadLetters puts dead letters back into the queue.
func (c *Client) ReplayDeadLetters(ctx context.Context, r gatehouse.ReplayRequest) (*gatehouse.ReplayAnswer, error) {
	return post[gatehouse.ReplayAnswer](ctx, c, true, "/dead-letters/replay", r)
}

// ResolvePush records the outcome of an unknown push.
func (c *Client) ResolvePush(ctx context.Context, id string, r gatehouse.Resolution) (*gatehouse.Push, error) {
	return post[gatehouse.Push](ctx, c, true, "/pushes/"+segment(id)+"/resolve", r)
}

func principal(idOrName, suffix string) string {
	return "/principals/" + segment(idOrName) + suffix
}

// CreatePrincipal creates a principal; only this answer contains its secrets.
func (c *Client) CreatePrincipal(ctx context.Context, r gatehouse.NewPrincipal) (*gatehouse.Credentials, error) {
	return post[gatehouse.Credentials](ctx, c, true, "/principals", r)
}

// FindPrincipal reads a principal by id or name.
func (c *Client) FindPrincipal(ctx context.Context, idOrName string) (*gatehouse.Principal, error) {
	return get[gatehouse.Principal](ctx, c, principal(idOrName, ""), nil)
}

// ListPrincipals returns a page of the tenant's principals.
func (c *Client) ListPrincipals(
	ctx context.Context, cursor string, limit int,
) (gatehouse.Page[*gatehouse.Principal], error) {
	return page[*gatehouse.Principal](ctx, c, "/principals", paging(cursor, limit))
}

// UpdatePrincipal changes a principal's roles or sponsor, or disables or enables it.
func (c *Client) UpdatePrincipal(
	ctx context.Context, idOrName string, r gatehouse.PrincipalChange,
) (*gatehouse.Principal, error) {
	return read[gatehouse.Principal](ctx, c, request{method: http.MethodPatch, path: principal(idOrName, ""), body: r})
}

// ListGroups returns the tenant's groups with their members.
func (c *Client) ListGroups(ctx context.Context) ([]*gatehouse.Group, error) {
	return list[*gatehouse.Group](ctx, c, "/groups", nil)
}

// FindGroup reads a group with its members.
func (c *Client) FindGroup(ctx context.Context, name string) (*gatehouse.Group, error) {
	return get[gatehouse.Group](ctx, c, "/groups/"+segment(name), nil)
}

// PutGroup creates a group, or replaces its manual members. With m.New it only creates.
func (c *Client) PutGroup(ctx context.Context, name string, m gatehouse.GroupMembers) (*gatehouse.Group, error) {
	return c.group(ctx, http.MethodPut, name, m)
}

// ChangeGroup adds manual members, and removes members of any source.
func (c *Client) ChangeGroup(ctx context.Context, name string, r gatehouse.GroupChange) (*gatehouse.Group, error) {
	return c.group(ctx, http.MethodPatch, name, r)
}

func (c *Client) group(ctx context.Context, method, name string, body any) (*gatehouse.Group, error) {
	return read[gatehouse.Group](ctx, c, request{method: method, path: "/groups/" + segment(name), body: body})
}

// DeleteGroup deletes a group and its memberships.
func (c *Client) DeleteGroup(ctx context.Context, name string) error {
	_, err := c.do(ctx, request{method: http.MethodDelete, path: "/groups/" + segment(name)})
	return err
}

// CreateKey creates another API key for a principal.
func (c *Client) CreateKey(ctx context.Context, idOrName string) (*gatehouse.Credentials, error) {
	return post[gatehouse.Credentials](ctx, c, true, principal(idOrName, "/keys"), nil)
}

// ListKeys returns a principal's keys, without their secrets.
func (c *Client) ListKeys(ctx context.Context, idOrName string) ([]*gatehouse.Key, error) {
	return list[*gatehouse.Key](ctx, c, principal(idOrName, "/keys"), nil)
}

// RevokeKey revokes an API key.
func (c *Client) RevokeKey(ctx context.Context, keyID string) error {
	_, err := c.do(ctx, request{method: http.MethodPost, path: "/keys/" + segment(keyID) + "/revoke"})
	return err
}

// RotateEditToken gives a person a new edit token and ends the old one.
func (c *Client) RotateEditToken(ctx context.Context, idOrName string) (*gatehouse.Credentials, error) {
	return post[gatehouse.Credentials](ctx, c, true, principal(idOrName, "/edit-token"), nil)
}

// CreateTenant creates a tenant.
func (c *Client) CreateTenant(ctx context.Context, id string) (*gatehouse.Tenant, error) {
	return post[gatehouse.Tenant](ctx, c, true, "/tenants", map[string]string{"id": id})
}

// ListTenants returns all tenants.
func (c *Client) ListTenants(ctx context.Context) ([]*gatehouse.Tenant, error) {
	return list[*gatehouse.Tenant](ctx, c, "/tenants", nil)
}

// WhoAmI returns the principal of the client's key.
func (c *Client) WhoAmI(ctx context.Context) (*gatehouse.Principal, error) {
	return get[gatehouse.Principal](ctx, c, "/whoami", nil)
}

// ApplyPolicy stores a policy and makes it the active one.
func (c *Client) ApplyPolicy(ctx context.Context, source string) (*gatehouse.PolicyVersion, error) {
	return post[gatehouse.PolicyVersion](ctx, c, true, "/policies", map[string]string{"source": source})
}

// ActivePolicy reads the active policy.
func (c *Client) ActivePolicy(ctx context.Context) (*gatehouse.PolicyVersion, error) {
	return get[gatehouse.PolicyVersion](ctx, c, "/policies/active", nil)
}

// FindPolicy reads a policy version.
func (c *Client) FindPolicy(ctx context.Context, version int) (*gatehouse.PolicyVersion, error) {
	return get[gatehouse.PolicyVersion](ctx, c, fmt.Sprintf("/policies/%d", version), nil)
}

// ListPolicies returns all versions, newest first, without their source.
func (c *Client) ListPolicies(ctx context.Context) ([]*gatehouse.PolicyVersion, error) {
	return list[*gatehouse.PolicyVersion](ctx, c, "/policies", nil)
}

// PolicyUsage returns how much of the active policy's ceilings is reserved.
func (c *Client) PolicyUsage(ctx context.Context) ([]*gatehouse.CeilingAccount, error) {
	return list[*gatehouse.CeilingAccount](ctx, c, "/policies/usage", nil)
}

// ActivatePolicy makes a stored version the active one.
func (c *Client) ActivatePolicy(ctx context.Context, version int) (*gatehouse.PolicyVersion, error) {
	return post[gatehouse.PolicyVersion](ctx, c, false, fmt.Sprintf("/policies/%d/activate", version), nil)
}

// ProposePolicy proposes to replace the active policy.
func (c *Client) ProposePolicy(ctx context.Context, r gatehouse.PolicyProposal) (*gatehouse.Action, error) {
	return post[gatehouse.Action](ctx, c, true, "/policies/propose", r)
}

// ExplainPolicy returns how the active policy would judge a proposal.
func (c *Client) ExplainPolicy(ctx context.Context, p *gatehouse.Proposal) (*gatehouse.Explanation, error) {
	return post[gatehouse.Explanation](ctx, c, false, "/policies/explain", p)
}

// ListEntries reads the audit log, starting at an index; limit is at most 200.
func (c *Client) ListEntries(ctx context.Context, from int64, limit int) ([]*gatehouse.Entry, error) {
	q := paging("", limit)
	if from > 0 {
		q.Set("after", strconv.FormatInt(from-1, 10))
	}
	return list[*gatehouse.Entry](ctx, c, "/audit/entries", q)
}

// Head reads the size and the root hash of the audit log.
func (c *Client) Head(ctx context.Context) (*gatehouse.LogHead, error) {
	return get[gatehouse.LogHead](ctx, c, "/audit/head", nil)
}

// Checkpoint reads the head of the audit log as a signed note.
func (c *Client) Checkpoint(ctx context.Context) (note []byte, err error) {
	_, err = c.do(ctx, request{method: http.MethodGet, path: "/audit/checkpoint", out: &note})
	return note, err
}

// LogKeys reads the public keys that verify checkpoints.
func (c *Client) LogKeys(ctx context.Context) (*gatehouse.LogKeys, error) {
	return get[gatehouse.LogKeys](ctx, c, "/audit/keys", nil)
}

// ProveEntry reads the proof that an entry lies in the log of the given size; 0 means the
// current size.
func (c *Client) ProveEntry(ctx context.Context, entry, size int64) (*gatehouse.EntryProof, error) {
	q := url.Values{"entry": {strconv.FormatInt(entry, 10)}}
	if size != 0 {
		q.Set("size", strconv.FormatInt(size, 10))
	}
	return get[gatehouse.EntryProof](ctx, c, "/audit/proof", q)
}

// ProveGrowth reads the consistency proof of two log sizes: the log at size from is a prefix of the log at size to.
// If to is 0, the current size is used.
func (c *Client) ProveGrowth(ctx context.Context, from, to int64) (*gatehouse.GrowthProof, error) {
	q := url.Values{"from": {strconv.FormatInt(from, 10)}}
	if to != 0 {
		q.Set("to", strconv.FormatInt(to, 10))
	}
	return get[gatehouse.GrowthProof](ctx, c, "/audit/consistency", q)
}
