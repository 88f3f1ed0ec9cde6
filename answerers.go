package gatehouse

import (
	"slices"
	"strings"
)

// MaxFirstAnswerers limits [OpenedProposal.Answerers], the persons who may answer a new proposal.
const MaxFirstAnswerers = 16

// Audience names the people whom a question asks; see [Approval].
type Audience struct {
	// Roles asks the holders of any of these roles; see [Principal.Has].
	Roles []Role `json:"roles,omitempty"`
	// People names principals by id or name.
	People []string `json:"people,omitempty"`
	Groups []string `json:"groups,omitempty"`
}

// Has reports whether the audience includes the principal: by role, by group, by
// name or by id.
func (a Audience) Has(p *Principal) bool {
	return slices.ContainsFunc(a.Roles, p.Has) || slices.ContainsFunc(a.Groups, p.In) ||
		slices.Contains(a.People, p.Name) || slices.Contains(a.People, p.ID)
}

// Or returns the union of both audiences, sorted, without duplicates.
func (a Audience) Or(b Audience) Audience {
	return Audience{union(a.Roles, b.Roles), union(a.People, b.People), union(a.Groups, b.Groups)}
}

func union[T ~string](a, b []T) []T {
	list := append(slices.Clone(a), b...)
	slices.Sort(list)
	return slices.Compact(list)
}

// Words lists the audience in words; see [Whom].
func (a Audience) Words() []string { return Whom(a.Roles, a.Groups, a.People) }

// Audience returns the people whom the approval asks from the beginning.
func (a *Approval) Audience() Audience { return Audience{a.Roles, a.People, a.Groups} }

// Bars reports whether the approval excludes the principal. It ignores the case of
// names, which may come from a proposal: "Ana" and "ana" are the same person.
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

// CountAnswerers counts the persons who may answer at some time: enabled approvers whom
// the approval asks and does not exclude. Two principals of one person count once.
// With fewer than Required, the question cannot be approved unless others get the role
// approver or join the audience.
func (a *Approval) CountAnswerers(people []*Principal) int {
	seen := make(map[string]bool)
	for _, p := range people {
		if p.MayDecide() && !a.Bars(p) && a.EverAsks(p) {
			seen[p.Person] = true
		}
	}
	return len(seen)
}
