package policy

import (
	"slices"

	"github.com/gatehouse-dev/gatehouse"
)

// audience says who may answer: holders of any of the roles, members of any of the
// groups, and the named people, by principal name or id. The use cases require the
// role approver in addition. The zero audience states nothing: where it is combined
// with another, the other counts.
type audience struct {
	roles  []gatehouse.Role
	people []string
	groups []string
}

func (a audience) stated() bool { return len(a.roles) > 0 || len(a.people) > 0 || len(a.groups) > 0 }

// everyone reports whether the audience includes every approver.
func (a audience) everyone() bool { return slices.Contains(a.roles, gatehouse.RoleApprover) }

// and returns the intersection. A person whom one audience names is left out if the
// other audience includes the person only by a role or a group, since the holders of
// roles and the members of groups are unknown here. The role approver is the exception:
// it includes everybody. If two stated audiences have nobody in common, the result is the
// zero audience: the caller must check stated.
func (a audience) and(b audience) audience {
	switch {
	case !a.stated() || a.everyone():
		if !b.stated() {
			return a
		}
		return b
	case !b.stated() || b.everyone():
		return a
	}
	var both audience
	for _, r := range a.roles {
		if slices.Contains(b.roles, r) || r == gatehouse.RoleAdmin && slices.Contains(b.roles, gatehouse.RoleOperator) {
			both.roles = append(both.roles, r)
		}
	}
	for _, r := range b.roles {
		if r == gatehouse.RoleAdmin && slices.Contains(a.roles, gatehouse.RoleOperator) && !slices.Contains(both.roles, r) {
			both.roles = append(both.roles, r)
		}
	}
	for _, name := range a.people {
		if slices.Contains(b.people, name) {
			both.people = append(both.people, name)
		}
	}
	for _, name := range a.groups {
		if slices.Contains(b.groups, name) {
			both.groups = append(both.groups, name)
		}
	}
	slices.Sort(both.roles)
	slices.Sort(both.people)
	slices.Sort(both.groups)
	return both
}

// enough reports whether the audience can have n distinct persons.
func (a audience) enough(n int) bool {
	return len(a.roles) > 0 || len(a.groups) > 0 || len(a.people) >= n
}
