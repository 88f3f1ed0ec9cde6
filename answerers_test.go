package gatehouse_test

import (
	"testing"

	"github.com/gatehouse-dev/gatehouse"
)

func TestAnswerers(t *testing.T) {
	t.Parallel()
	person := func(name string, change func(*gatehouse.Principal)) *gatehouse.Principal {
		p := &gatehouse.Principal{ID: "prn_" + name, Name: name, Kind: gatehouse.KindPerson, Person: "prn_" + name,
			Roles: []gatehouse.Role{gatehouse.RoleApprover}}
		if change != nil {
			change(p)
		}
		return p
	}
	people := []*gatehouse.Principal{
		person("ana", func(p *gatehouse.Principal) {
			p.Groups = []gatehouse.Membership{{Group: "finance", From: gatehouse.ByHand}}
		}),
		person("ben", nil),
		person("ben-too", func(p *gatehouse.Principal) { p.Person = "prn_ben" }),
		person("gone", func(p *gatehouse.Principal) { p.Disabled = true }),
		person("reader", func(p *gatehouse.Principal) { p.Roles = []gatehouse.Role{gatehouse.RoleAuditor} }),
		person("bot", func(p *gatehouse.Principal) { p.Kind = gatehouse.KindService }),
		person("root", func(p *gatehouse.Principal) { p.Roles = []gatehouse.Role{gatehouse.RoleAdmin} }),
	}
	for name, c := range map[string]struct {
		ap   gatehouse.Approval
		want int
	}{
		"everybody":               {gatehouse.Approval{}, 3},
		"a role":                  {gatehouse.Approval{Roles: []gatehouse.Role{gatehouse.RoleAdmin}}, 1},
		"a group":                 {gatehouse.Approval{Groups: []string{"finance"}}, 1},
		"an empty group":          {gatehouse.Approval{Groups: []string{"legal"}}, 0},
		"people":                  {gatehouse.Approval{People: []string{"ben", "prn_ben-too", "gone", "nobody"}}, 1},
		"a group or people":       {gatehouse.Approval{Groups: []string{"finance"}, People: []string{"ben"}}, 2},
		"excluded by name":        {gatehouse.Approval{Excluded: []string{"ANA"}}, 2},
		"excluded by person id":   {gatehouse.Approval{Excluded: []string{"prn_ben"}}, 2},
		"excluded from the group": {gatehouse.Approval{Groups: []string{"finance"}, Excluded: []string{"ana"}}, 0},
		"everybody excluded":      {gatehouse.Approval{Excluded: []string{"ana", "prn_ben", "root"}}, 0},
	} {
		if got := c.ap.CountAnswerers(people); got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
	}
}
