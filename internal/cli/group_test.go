package cli

import (
	"context"
	"strings"
	"testing"

	"github.com/gatehouse-dev/gatehouse"
)

// existingGroup is a service in which somebody else has just made the group.
type existingGroup struct {
	service
	sent *gatehouse.GroupMembers
}

func (s *existingGroup) FindGroup(context.Context, string) (*gatehouse.Group, error) {
	return nil, gatehouse.E(gatehouse.CodeNotFound, "no such group")
}

func (s *existingGroup) PutGroup(_ context.Context, _ string, m gatehouse.GroupMembers) (*gatehouse.Group, error) {
	if s.sent = &m; m.New {
		return nil, gatehouse.E(gatehouse.CodeAlreadyExists, "the group finance exists")
	}
	return &gatehouse.Group{}, nil
}

// TestGroupCreateReplacesNothing: of two administrators who create a group at once, the second empties nothing.
func TestGroupCreateReplacesNothing(t *testing.T) {
	t.Parallel()
	g, _, _ := testGlobals(t)
	s := &existingGroup{}
	err := (&groupCreateCmd{Name: "finance", People: []string{"ana"}}).Run(g, s)
	if gatehouse.CodeOf(err) != gatehouse.CodeAlreadyExists ||
		!strings.Contains(err.Error(), "gatehouse group add finance") {
		t.Errorf("got %v", err)
	}
	if s.sent == nil || len(s.sent.Members) != 1 {
		t.Errorf("sent %+v", s.sent)
	}
}
