package card

import (
	"strings"
	"testing"

	"github.com/gatehouse-dev/gatehouse"
)

func TestEdited(t *testing.T) {
	t.Parallel()
	got := ""
	for _, c := range Edited(`{"a":1,"b":{"c":"x","d":1},"e":1}`, `{"a":1,"b":{"c":"y","d":1},"f":null}`) {
		got += c.Path + ":" + string(c.Before.JSON) + ">" + string(c.After.JSON) + " "
	}
	if want := `/b/c:"x">"y" /f:>null /e:1> `; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

func TestEditedChanges(t *testing.T) {
	t.Parallel()
	list := EditedChanges(&gatehouse.Edit{Changes: []gatehouse.EditedField{
		{Path: "/price", Before: `"12.50"`, After: `"11.90"`}, {Path: "/note", After: `"x"`}, {Path: "/tag", Before: `"y"`},
	}})
	if len(list) != 3 || list[0].Delta == nil || list[0].Delta.String() != "-0.60" || list[1].Kind != Added ||
		list[2].Kind != Removed {
		t.Errorf("%+v", list)
	}
}

func TestAfterEdit(t *testing.T) {
	t.Parallel()
	ana := &gatehouse.Principal{ID: "prn_ana", Name: "ana"}
	for _, c := range []struct {
		required int
		excluded []string
		want     string
	}{
		{1, nil, "you may approve it yourself"}, {1, []string{"prn_ana"}, "somebody else has to approve it (approver)"},
		{2, nil, "2 people have to approve it (approver), and you may be one"},
		{2, []string{"ana"}, "2 others have to approve it"},
	} {
		a := &gatehouse.Action{Approval: &gatehouse.Approval{
			Required: c.required, Excluded: c.excluded, Roles: []gatehouse.Role{gatehouse.RoleApprover},
		}}
		if got := AfterEdit(a, ana); !strings.Contains(got, c.want) {
			t.Errorf("%d %v: %s", c.required, c.excluded, got)
		}
	}
	if AfterEdit(&gatehouse.Action{}, ana) != "" {
		t.Error("an action without an approval: it says who may approve it")
	}
}
