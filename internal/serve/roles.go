package serve

import (
	"slices"
	"strings"

	"github.com/gatehouse-dev/gatehouse/internal/term"
)

// Role is one kind of work that a process can do. Any number of processes may
// do the same on one PostgreSQL.
type Role string

// The roles of serve.
const (
	RoleAPI        Role = "api"
	RoleDispatcher Role = "dispatcher"
	RoleSequencer  Role = "sequencer"
	RoleSweeper    Role = "sweeper"
	RoleFeed       Role = "feed"
	RoleRunner     Role = "runner"
	RoleNotifier   Role = "notifier"
)

// AllRoles is what a process does that is not told otherwise.
func AllRoles() []Role {
	return []Role{RoleAPI, RoleDispatcher, RoleSequencer, RoleSweeper, RoleFeed, RoleRunner, RoleNotifier}
}

func has(roles []Role, r Role) bool { return slices.Contains(roles, r) }

// RoleWords lists the roles, with last before the last one.
func RoleWords(last string) string {
	var words []string
	for _, r := range AllRoles() {
		words = append(words, string(r))
	}
	n := len(words) - 1
	return strings.Join(words[:n], ", ") + last + words[n]
}

// parseRoles reads a list of roles.
func parseRoles(names []string) ([]Role, error) {
	if len(names) == 0 {
		return AllRoles(), nil
	}
	var roles []Role
	for _, name := range names {
		r := Role(strings.TrimSpace(name))
		if !slices.Contains(AllRoles(), r) {
			return nil, term.Usagef("there is no role %q; there are %s", name, RoleWords(" and "))
		}
		roles = append(roles, r)
	}
	return roles, nil
}

// roleList is a list with commas. An empty one is refused: with a variable that
// is not set, a process would do what it was not meant to.
type roleList []Role

// UnmarshalText adds a list to those before it: the flag may be repeated.
func (l *roleList) UnmarshalText(text []byte) error {
	more, err := parseRoles(strings.Split(string(text), ","))
	*l = append(*l, more...)
	return err
}
