package gatehouse

import (
	"cmp"
	"regexp"
	"slices"
	"strings"
	"time"
)

// ByHand is the source of a membership that an administrator set. Every other
// source is the issuer of an OIDC provider.
const ByHand = "hand"

// The bounds of groups.
const (
	MaxGroupMembers     = 1000 // people in one group; only sign-ins can exceed it
	MaxGroupMemberships = 100  // groups of one person, from any source
)

// Group is a named set of people of one tenant. A policy can ask groups, people or
// roles. Membership is checked at the moment of the vote, and again when the
// question is settled and when the change is dispatched.
type Group struct {
	Tenant string `json:"tenant"`
	// Name is unique in the tenant; see [ValidGroupName].
	Name      string    `json:"name"`
	CreatedAt time.Time `json:"created_at"`
	// Members are sorted by name.
	Members []GroupMember `json:"members"`
}

// GroupMember is a person of a group.
type GroupMember struct {
	ID   string `json:"id"`
	Name string `json:"name"`
	// From lists the sources of the membership: [ByHand] or issuers.
	From []string `json:"from"`
	// Disabled marks a member whose vote does not count.
	Disabled bool `json:"disabled,omitempty"`
}

// GroupMembers names the members of a group that are set by hand, by id or
// name. Members that come from a sign-in stay.
type GroupMembers struct {
	// Members replaces the list, at most [MaxGroupMembers].
	Members []string `json:"members"`
	// New is true to refuse, with already_exists, a group that exists.
	New bool `json:"new,omitempty"`
}

// GroupChange names people, by id or name, to add by hand and to remove from every
// source. A removed member whose membership comes from a sign-in is a member again
// after the next sign-in, unless the provider says otherwise.
type GroupChange struct {
	Add    []string `json:"add,omitempty"`
	Remove []string `json:"remove,omitempty"`
}

// Membership says that a principal is in a group, and from which source. A principal
// can be in one group from several sources.
type Membership struct {
	Group string `json:"group"`
	// From is [ByHand] or an issuer.
	From string `json:"from"`
}

var groupName = regexp.MustCompile(`^[a-z0-9][a-z0-9._-]{0,63}$`)

// ValidGroupName reports whether a group can have the name: 1 to 64 characters, each a
// lower-case letter, a digit or one of ._-, the first a letter or digit. Without upper
// case, no two groups differ by case only.
func ValidGroupName(name string) bool { return groupName.MatchString(name) }

// In reports whether the principal is a member of the group, from any source.
func (p *Principal) In(group string) bool {
	return slices.ContainsFunc(p.Groups, func(m Membership) bool { return m.Group == group })
}

// GroupNames lists the groups that the principal is in, by name, each once.
func (p *Principal) GroupNames() []string {
	names := make([]string, 0, len(p.Groups))
	for _, m := range p.Groups {
		names = append(names, m.Group)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// SetGroups replaces the memberships that come from one source, and reports
// whether that changed anything.
func (p *Principal) SetGroups(from string, groups []string) bool {
	list := slices.DeleteFunc(slices.Clone(p.Groups), func(m Membership) bool { return m.From == from })
	for _, group := range groups {
		list = append(list, Membership{group, from})
	}
	slices.SortFunc(list, compareMemberships)
	list = slices.Compact(list)
	if slices.Equal(list, p.Groups) {
		return false
	}
	p.Groups = list
	return true
}

// LeaveGroup ends the membership from every source, and reports whether there
// was one.
func (p *Principal) LeaveGroup(group string) bool {
	list := slices.DeleteFunc(slices.Clone(p.Groups), func(m Membership) bool { return m.Group == group })
	left := len(list) < len(p.Groups)
	p.Groups = list
	return left
}

func compareMemberships(a, b Membership) int {
	return cmp.Or(strings.Compare(a.Group, b.Group), strings.Compare(a.From, b.From))
}
