package gatehouse

import (
	"slices"
	"strings"
)

// MaxFirstAnswerers is how many persons FirstAnswerers of a store returns.
const MaxFirstAnswerers = 16

// Audience is whom a question asks, as in [Approval].
type Audience struct {
	Roles          []Role
	People, Groups []string
}

// Audience returns whom the approval asks.
func (a *Approval) Audience() Audience { return Audience{a.Roles, a.People, a.Groups} }

// Bars reports whether the approval excludes the principal. Names are compared
// without regard to case, since those of the list may come from a proposal:
// "Ana" is not another person than "ana".
func (a *Approval) Bars(p *Principal) bool {
	return slices.ContainsFunc(a.Excluded, func(s string) bool {
		return s == p.ID || s == p.Person || strings.EqualFold(s, p.Name)
	})
}

// MayDecide reports whether the principal has the right to decide at all: an
// enabled person with the role approver.
func (p *Principal) MayDecide() bool {
	return !p.Disabled && p.Kind == KindPerson && p.Has(RoleApprover)
}

// Answerers counts the persons among people who may answer: enabled approvers
// who are asked and not excluded. Two principals of one human count once. Where
// there are fewer than Required, the approval can never be given.
func (a *Approval) Answerers(people []*Principal) int {
	seen := make(map[string]bool)
	for _, p := range people {
		if p.MayDecide() && !a.Bars(p) && a.Asks(p) {
			seen[p.Person] = true
		}
	}
	return len(seen)
}
