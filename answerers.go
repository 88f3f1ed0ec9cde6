package gatehouse

import (
	"slices"
	"strings"
)

// Bars reports whether the approval excludes the principal. Names are compared
// without regard to case, since those of the list may come from a proposal:
// "Ana" is not another person than "ana".
func (a *Approval) Bars(p *Principal) bool {
	return slices.ContainsFunc(a.Excluded, func(s string) bool {
		return s == p.ID || s == p.Person || strings.EqualFold(s, p.Name)
	})
}

// Answerers counts the persons among people who may answer: enabled approvers
// who are asked and not excluded. Two principals of one human count once. Where
// there are fewer than Required, the approval can never be given.
func (a *Approval) Answerers(people []*Principal) int {
	seen := make(map[string]bool)
	for _, p := range people {
		if !p.Disabled && p.Kind == KindPerson && p.Has(RoleApprover) && !a.Bars(p) && a.Asks(p) {
			seen[p.Person] = true
		}
	}
	return len(seen)
}
