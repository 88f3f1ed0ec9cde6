package cli

import (
	"slices"
	"strings"

	"github.com/gatehouse-dev/gatehouse/internal/term"
)

// role is one kind of work that a process can do. Any number of processes may
// do the same on one PostgreSQL.
type role string

// The roles of serve.
const (
	roleAPI        role = "api"
	roleDispatcher role = "dispatcher"
	roleSequencer  role = "sequencer"
	roleSweeper    role = "sweeper"
	roleFeed       role = "feed"
	roleRunner     role = "runner"
	roleNotifier   role = "notifier"
)

// allRoles is what a process does that is not told otherwise.
func allRoles() []role {
	return []role{roleAPI, roleDispatcher, roleSequencer, roleSweeper, roleFeed, roleRunner, roleNotifier}
}

func has(roles []role, r role) bool { return slices.Contains(roles, r) }

// roleWords lists the roles, with last before the last one.
func roleWords(last string) string {
	var words []string
	for _, r := range allRoles() {
		words = append(words, string(r))
	}
	n := len(words) - 1
	return strings.Join(words[:n], ", ") + last + words[n]
}

// parseRoles reads a list of roles.
func parseRoles(names []string) ([]role, error) {
	if len(names) == 0 {
		return allRoles(), nil
	}
	var roles []role
	for _, name := range names {
		r := role(strings.TrimSpace(name))
		if !slices.Contains(allRoles(), r) {
			return nil, term.Usagef("there is no role %q; there are %s", name, roleWords(" and "))
		}
		roles = append(roles, r)
	}
	return roles, nil
}

// roleList is a list with commas. An empty one is refused: with a variable that
// is not set, a process would do what it was not meant to.
type roleList []role

// UnmarshalText adds a list to those before it: the flag may be repeated.
func (l *roleList) UnmarshalText(text []byte) error {
	more, err := parseRoles(strings.Split(string(text), ","))
	*l = append(*l, more...)
	return err
}
