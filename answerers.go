package gatehouse

import (
	"slices"
	"strings"
)

// MaxFirstAnswerers is how many persons FirstAnswerers of a store returns.
const MaxFirstAnswerers = 16

// Audience is whom a question asks, as in [Approval].
type Audience struct {
	Roles  []Role   `json:"roles,omitempty"`
	People []string `json:"people,omitempty"`
	Groups []string `json:"groups,omitempty"`
}

// Has reports whether the principal is among them.
func (a Audience) Has(p *Principal) bool {
	return slices.ContainsFunc(a.Roles, p.Has) || slices.ContainsFunc(a.Groups, p.In) ||
		slices.Contains(a.People, p.Name) || slices.Contains(a.People, p.ID)
}

// Or returns who is in one of both, each named once, in order.
func (a Audience) Or(b Audience) Audience {
	return Audience{union(a.Roles, b.Roles), union(a.People, b.People), union(a.Groups, b.Groups)}
}

func union[T ~string](a, b []T) []T {
	list := append(slices.Clone(a), b...)
	slices.Sort(list)
	return slices.Compact(list)
}

// Words lists whom it asks, in words: see [Whom].
func (a Audience) Words() []string { return Whom(a.Roles, a.Groups, a.People) }

// Audience returns whom the approval asks from the beginning.
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

// Answerers counts the persons among people who may answer at some time: enabled
// approvers who are asked and not excluded. Two principals of one human count once. Where
// there are fewer than Required, the approval can never be given.
func (a *Approval) Answerers(people []*Principal) int {
	seen := make(map[string]bool)
	for _, p := range people {
		if p.MayDecide() && !a.Bars(p) && a.EverAsks(p) {
			seen[p.Person] = true
		}
	}
	return len(seen)
}
