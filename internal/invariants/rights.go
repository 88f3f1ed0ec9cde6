package invariants

import (
	"cmp"
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/store/shared"
)

// rights checks rule 23: the tables that say who may decide match the log. The comparison reveals a role that was
// granted, or a policy that was replaced, by writing to the database directly. Somebody can also rewrite the log, but
// not its part up to a head that is kept elsewhere. The question and votes of an action are checked with the action
// (checkQuestion, checkVotes).
func (c *checker) rights(ctx context.Context) error {
	return c.in(ctx, func(tx *sql.Tx) error {
		h, err := readRights(ctx, tx)
		if err != nil {
			return err
		}
		if err := c.principals(ctx, tx, h); err != nil {
			return err
		}
		if err := c.checkDelegations(ctx, tx, h); err != nil {
			return err
		}
		if err := c.checkSecrets(ctx, tx, h); err != nil {
			return err
		}
		if err := c.checkGrants(ctx, tx, h); err != nil {
			return err
		}
		if err := c.checkMandates(ctx, tx, h); err != nil {
			return err
		}
		if err := c.checkWorkflows(ctx, tx, h); err != nil {
			return err
		}
		return c.policies(ctx, tx, h)
	})
}

// subject identifies a thing of a tenant.
type subject struct{ tenant, id string }

// rightsHistory is the log's account of principals, policies, connectors, delegations, secrets, grants,
// mandates and workflows.
type rightsHistory struct {
	principals map[subject]*loggedPrincipal
	// policies holds the hashes of the versions, by "policy:<version>" and "connectors:<version>"; active is
	// the version that was applied or activated last.
	policies map[subject]string
	active   map[string]int
	// delegations, by id, according to their last entries.
	delegations map[subject]loggedDelegation
	secrets     map[subject]loggedSecret
	// grants, by id, with their first entries, and whether a later entry ended them.
	grants map[subject]loggedGrant
	// mandates, by id, with the hash of the row in their last entries.
	mandates map[subject]string
	// workflows, by the id of a version.
	workflows map[subject]loggedWorkflow
}

// loggedPrincipal is a principal according to its entries. A field that an
// entry does not name keeps its value.
type loggedPrincipal struct {
	Name     string           `json:"name"`
	Kind     gatehouse.Kind   `json:"kind"`
	Roles    []gatehouse.Role `json:"roles"`
	Sponsor  string           `json:"sponsor"`
	Person   string           `json:"person"`
	Disabled bool             `json:"disabled"`
	// Groups holds the memberships with their sources.
	Groups []gatehouse.Membership `json:"groups"`
	// ApproverSince is named by every entry that restarts an approver's waiting
	// time; nil if no entry names it, as in older logs.
	ApproverSince json.RawMessage `json:"approver_since"`
}

// readRights reads the entries of everything that rightsHistory holds, in the order of writing.
func readRights(ctx context.Context, tx *sql.Tx) (*rightsHistory, error) {
	h := &rightsHistory{principals: map[subject]*loggedPrincipal{}, policies: map[subject]string{},
		active:      map[string]int{},
		delegations: map[subject]loggedDelegation{}, grants: map[subject]loggedGrant{},
		mandates: map[subject]string{}, secrets: map[subject]loggedSecret{}, workflows: map[subject]loggedWorkflow{}}
	const query = `SELECT tenant, body FROM audit_leaf WHERE action_id = '' AND (
  body LIKE '%"type":"principal.%' OR body LIKE '%"type":"policy.%' OR body LIKE '%"type":"delegation.%'
  OR body LIKE '%"type":"connectors.%' OR body LIKE '%"type":"grant.%' OR body LIKE '%"type":"mandate.%'
  OR body LIKE '%"type":"secret.%' OR body LIKE '%"type":"workflow.applied"%'
  OR body LIKE '%"approver_since":%')
ORDER BY seq`
	err := each(ctx, tx, query, func(rows *sql.Rows) error {
		var tenant, body string
		if err := rows.Scan(&tenant, &body); err != nil {
			return err
		}
		var l gatehouse.Leaf
		if json.Unmarshal([]byte(body), &l) == nil { // rule 14 reports an unreadable entry
			h.add(tenant, &l)
		}
		return nil
	})
	return h, err
}

func (h *rightsHistory) add(tenant string, l *gatehouse.Leaf) {
	at := subject{tenant, l.Subject}
	switch l.Type {
	case "principal.created", "principal.changed":
		p := h.principals[at]
		if p == nil {
			p = &loggedPrincipal{}
			h.principals[at] = p
		}
		// An unreadable entry leaves the record unchanged, and the comparison
		// reports the difference.
		_ = json.Unmarshal([]byte(l.Data), p)
	case "policy.applied", "policy.activated", "connectors.applied":
		var d struct {
			Version int    `json:"version"`
			SHA256  string `json:"sha256"`
		}
		if json.Unmarshal([]byte(l.Data), &d) == nil {
			h.policies[at] = d.SHA256
			if l.Type != "connectors.applied" {
				h.active[tenant] = d.Version
			}
		}
	case "delegation.made", "delegation.ended":
		h.recordDelegation(tenant, l)
	case "grant.created", "grant.ended":
		h.recordGrant(tenant, l)
	case "mandate.given", "mandate.used", "mandate.narrowed", "mandate.paused", "mandate.resumed", "mandate.ended":
		h.recordMandate(tenant, l)
	case "workflow.applied":
		w := loggedWorkflow{digest: l.Digest}
		if json.Unmarshal([]byte(l.Data), &w) == nil {
			h.workflows[at] = w
		}
	case "secret.set", "secret.rotated", "secret.revoked":
		h.recordSecret(tenant, l)
	default:
		h.recordCredential(tenant, l)
	}
}

// recordCredential takes approver_since from the entry of a credential. The entry concerns the
// principal that its data names, or else the principal that is its subject.
func (h *rightsHistory) recordCredential(tenant string, l *gatehouse.Leaf) {
	var d struct {
		Principal     string          `json:"principal"`
		ApproverSince json.RawMessage `json:"approver_since"`
	}
	if json.Unmarshal([]byte(l.Data), &d) != nil || d.ApproverSince == nil {
		return
	}
	if p := h.principals[subject{tenant, cmp.Or(d.Principal, l.Subject)}]; p != nil {
		p.ApproverSince = d.ApproverSince
	}
}

func (c *checker) principals(ctx context.Context, tx *sql.Tx, h *rightsHistory) error {
	const query = `SELECT tenant, id, name, kind, roles, sponsor, person, disabled, groups, approver_since FROM principal`
	return each(ctx, tx, query, func(rows *sql.Rows) error {
		var at subject
		var p loggedPrincipal
		var roles, groups string
		var since sql.NullInt64
		if err := rows.Scan(&at.tenant, &at.id, &p.Name, &p.Kind, &roles, &p.Sponsor, &p.Person, &p.Disabled, &groups,
			&since); err != nil {
			return err
		}
		var err error
		p.ApproverSince = json.RawMessage("null")
		if since.Valid {
			if p.ApproverSince, err = json.Marshal(time.UnixMicro(since.Int64).UTC()); err != nil {
				return err
			}
		}
		c.r.examined(23, 1)
		if p.Roles, err = shared.DecodeList[gatehouse.Role](roles); err != nil {
			return fmt.Errorf("%s: %w", at.id, err)
		}
		if p.Groups, err = shared.DecodeMemberships(groups); err != nil {
			return fmt.Errorf("%s: %w", at.id, err)
		}
		logged := h.principals[at]
		if logged == nil {
			c.r.violated(23, at.tenant, at.id, "the log has no entry for the principal %s", p.Name)
			return nil
		}
		for _, d := range logged.differences(&p) {
			c.r.violated(23, at.tenant, at.id, "principal %s: %s", p.Name, d)
		}
		return nil
	})
}

// differences describes where the table differs from the log.
func (l *loggedPrincipal) differences(row *loggedPrincipal) (list []string) {
	differ := func(what string, logged, stored any) {
		if fmt.Sprint(logged) != fmt.Sprint(stored) {
			list = append(list, fmt.Sprintf("the table has %s %v, the log has %v", what, stored, logged))
		}
	}
	differ("name", l.Name, row.Name)
	differ("kind", l.Kind, row.Kind)
	differ("roles", sorted(l.Roles), sorted(row.Roles))
	differ("sponsor", l.Sponsor, row.Sponsor)
	differ("person", l.Person, row.Person)
	differ("disabled", l.Disabled, row.Disabled)
	differ("groups", l.Groups, row.Groups)
	if l.ApproverSince != nil {
		differ("approver_since", string(l.ApproverSince), string(row.ApproverSince))
	}
	return list
}

func sorted[T ~string](list []T) []T {
	list = slices.Clone(list)
	slices.Sort(list)
	return list
}

func (c *checker) policies(ctx context.Context, tx *sql.Tx, h *rightsHistory) error {
	const versions = `SELECT tenant, 'policy:' || version, source, sha256 FROM policy_version
UNION ALL SELECT tenant, 'connectors:' || version, source, sha256 FROM connector_version`
	err := each(ctx, tx, versions, func(rows *sql.Rows) error {
		var tenant, id, source, stored string
		if err := rows.Scan(&tenant, &id, &source, &stored); err != nil {
			return err
		}
		c.r.examined(23, 1)
		sum := sha256.Sum256([]byte(source))
		if got, want := hex.EncodeToString(sum[:]), h.policies[subject{tenant, id}]; got != want || stored != want {
			c.r.violated(23, tenant, id, "its text has the SHA-256 %s, the log has %q", got, want)
		}
		return nil
	})
	if err != nil {
		return err
	}
	return each(ctx, tx, `SELECT tenant, version FROM policy_active`, func(rows *sql.Rows) error {
		var tenant string
		var version int
		if err := rows.Scan(&tenant, &version); err != nil {
			return err
		}
		if want := h.active[tenant]; version != want {
			c.r.violated(23, tenant, fmt.Sprintf("policy:%d", version), "it is the active version, the log has %d", want)
		}
		return nil
	})
}

// checkQuestion checks rule 23: the approval asks what the log says.
func (f *actionRows) checkQuestion(say sayer) {
	if f.approval == nil {
		return
	}
	for _, l := range f.leaves {
		if l.Type != "hitl.proposed" {
			continue
		}
		var d struct {
			Question string `json:"question"`
		}
		if l.Data == "" || json.Unmarshal([]byte(l.Data), &d) != nil || d.Question != f.approval.question {
			say(23, "what the approval asks (people, number of votes, times, schedule, value to retype or subject) "+
				"differs from the log")
		}
		return
	}
}
