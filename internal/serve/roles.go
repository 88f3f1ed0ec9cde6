package serve

import (
	"slices"
	"strings"

	"github.com/gatehouse-dev/gatehouse/internal/term"
)

// Role is one kind of work that a process can do. Any number of processes may
// have the same role on one PostgreSQL database.
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

// AllRoles returns the default roles of a process.
func AllRoles() []Role {
	return []Role{RoleAPI, RoleDispatcher, RoleSequencer, RoleSweeper, RoleFeed, RoleRunner, RoleNotifier}
}

func has(roles []Role, r Role) bool { return slices.Contains(roles, r) }

// RoleWords lists the roles. conjunction is the text before the last role, such as " and ".
func RoleWords(conjunction string) string {
	var words []string
	for _, r := range AllRoles() {
		words = append(words, string(r))
	}
	n := len(words) - 1
	return strings.Join(words[:n], ", ") + conjunction + words[n]
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

// roleList is a comma-separated list. An empty list is refused: with an unset
// variable, a process would have unintended roles.
type roleList []Role

// UnmarshalText appends a list to the previous ones: the flag may be repeated.
func (l *roleList) UnmarshalText(text []byte) error {
	more, err := parseRoles(strings.Split(string(text), ","))
	*l = append(*l, more...)
	return err
}
