package gate

import (
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/gatehouse-dev/gatehouse"
)

// Require fails with role_required unless the caller has one of the roles.
func Require(c *gatehouse.Caller, roles ...gatehouse.Role) error {
	for _, r := range roles {
		if c.Principal.Has(r) {
			return nil
		}
	}
	return gatehouse.E(gatehouse.CodeRoleRequired, "this needs the role %s", joinRoles(roles)).With("roles", roles)
}

func joinRoles(roles []gatehouse.Role) string {
	s := ""
	for i, r := range roles {
		if i > 0 {
			s += " or "
		}
		s += string(r)
	}
	return s
}

// mayVote checks the general right to decide: a person with the role approver who
// proved the second secret.
func mayVote(c *gatehouse.Caller) error {
	if !c.Principal.Has(gatehouse.RoleApprover) || c.Principal.Kind != gatehouse.KindPerson {
		return gatehouse.E(gatehouse.CodeRoleRequired, "only a person with the role approver decides").
			With("roles", []gatehouse.Role{gatehouse.RoleApprover})
	}
	return steppedUp(c)
}

// steppedUp checks that the caller proved the second secret.
func steppedUp(c *gatehouse.Caller) error {
	if !c.StepUp {
		return gatehouse.E(gatehouse.CodeEditTokenRequired, "deciding or editing needs your edit token in X-Edit-Token")
	}
	return nil
}

// MayAnswer returns the reason why a principal has no right to answer an approval; nil when it has
// the right, whether or not it has voted already.
func MayAnswer(ap *gatehouse.Approval, p *gatehouse.Principal, now time.Time) error {
	if ap.Bars(p) {
		return gatehouse.E(gatehouse.CodeSelfApproval, "the proposer, its sponsor, the person it was proposed for and "+
			"everybody who contributed to its content cannot decide")
	}
	if !p.MayDecide() {
		return gatehouse.E(gatehouse.CodeRoleRequired, "only a person with the role approver decides")
	}
	if ap.Asks(p, now) {
		return nil
	}
	people := ap.AudienceAt(now)
	words := "the policy names other people for this approval"
	if from := asksFrom(ap, p); !from.IsZero() {
		words += "; you are asked from " + from.UTC().Format(time.RFC3339)
	}
	e := gatehouse.E(gatehouse.CodeRoleRequired, "%s", words).With("roles", people.Roles).With("people", people.People)
	if len(people.Groups) > 0 {
		e = e.With("groups", people.Groups)
	}
	return e
}

// asksFrom is when the first stage that asks a principal begins; zero for none.
func asksFrom(ap *gatehouse.Approval, p *gatehouse.Principal) time.Time {
	from := ap.CreatedAt
	for _, s := range ap.Stages {
		if s.Who.Has(p) {
			return from
		}
		from = from.Add(s.For.D())
	}
	return time.Time{}
}

// excluded is [gatehouse.Approval.Bars] for a list.
func excluded(list []string, p *gatehouse.Principal) bool {
	return (&gatehouse.Approval{Excluded: list}).Bars(p)
}

// exclude lists the people who cannot decide an action: every name and id of its
// proposer, of the proposer's sponsor, of the person on whose behalf it is proposed,
// and of other contributors. Names match without regard to case. A name that nobody has
// yet is kept as given.
func exclude(find finder, proposer *gatehouse.Principal, onBehalfOf string, also ...string) ([]string, error) {
	list := []string{proposer.ID, proposer.Person, proposer.Name}
	for _, who := range append(named(proposer, onBehalfOf), also...) {
		if who == "" {
			continue
		}
		known, err := identities(find, who)
		if err != nil {
			return nil, err
		}
		list = append(list, known...)
	}
	slices.Sort(list)
	return slices.DeleteFunc(slices.Compact(list), func(s string) bool { return s == "" }), nil
}

// finder is [gatehouse.IdentityReader.FindPrincipal].
type finder func(idOrName string) (*gatehouse.Principal, error)

// identities lists an id or name, and the other ids and names of its principal, if
// there is one.
func identities(find finder, who string) ([]string, error) {
	list := []string{who}
	// Names match without regard to case; ids are lower-case.
	for _, spelling := range spellings(who) {
		p, err := find(spelling)
		switch {
		case err == nil:
			list = append(list, p.ID, p.Person, p.Name)
		case !errors.Is(err, gatehouse.ErrNotFound):
			return nil, err
		}
	}
	return list, nil
}

// named lists the given names of the proposer's sponsor and of the person on whose
// behalf it proposes.
func named(proposer *gatehouse.Principal, onBehalfOf string) (list []string) {
	for _, who := range []string{proposer.Sponsor, onBehalfOf} {
		if who = strings.TrimSpace(who); who != "" {
			list = append(list, who)
		}
	}
	return list
}

// spellings lists the forms in which a name may be stored.
func spellings(who string) []string {
	if lower := strings.ToLower(who); lower != who {
		return []string{who, lower}
	}
	return []string{who}
}
