package gatehouse_test

import (
	"testing"
	"time"

	"github.com/gatehouse-dev/gatehouse"
)

// TestQuestion: the digest depends on everything that an approval freezes, but not on
// the order of a list.
func TestQuestion(t *testing.T) {
	t.Parallel()
	at := time.UnixMicro(1_795_000_000_000_000)
	approval := func() *gatehouse.Approval {
		return &gatehouse.Approval{
			ID: "apr_1", Required: 2, Roles: []gatehouse.Role{"approver", "admin"}, People: []string{"ana"},
			Excluded: []string{"bot", "prn_1"}, CreatedAt: at, ExpiresAt: at.Add(time.Hour),
			Confirm: &gatehouse.Confirm{Prompt: "amount", Value: "10"},
		}
	}
	want := approval().Question()
	same := approval()
	same.Roles, same.Status, same.Votes = []gatehouse.Role{"admin", "approver"}, gatehouse.ApprovalApproved,
		[]gatehouse.Vote{{Name: "ana"}}
	if got := same.Question(); got != want {
		t.Errorf("order, status and votes change the digest: %s, want %s", got, want)
	}
	for name, change := range map[string]func(*gatehouse.Approval){
		"id":       func(a *gatehouse.Approval) { a.ID = "apr_2" },
		"required": func(a *gatehouse.Approval) { a.Required = 1 },
		"roles":    func(a *gatehouse.Approval) { a.Roles = a.Roles[:1] },
		"people":   func(a *gatehouse.Approval) { a.People = nil },
		"groups":   func(a *gatehouse.Approval) { a.Groups = []string{"finance"} },
		"excluded": func(a *gatehouse.Approval) { a.Excluded = a.Excluded[:1] },
		"created":  func(a *gatehouse.Approval) { a.CreatedAt = at.Add(time.Microsecond) },
		"expires":  func(a *gatehouse.Approval) { a.ExpiresAt = at },
		"confirm":  func(a *gatehouse.Approval) { a.Confirm = nil },
		"value":    func(a *gatehouse.Approval) { a.Confirm.Value = "1" },
		"about":    func(a *gatehouse.Approval) { a.About = &gatehouse.About{Connector: "shop"} },
	} {
		a := approval()
		change(a)
		if a.Question() == want {
			t.Errorf("%s is not part of the digest", name)
		}
	}
}
