package cli

import (
	"strings"
	"testing"
	"time"

	"github.com/gatehouse-dev/gatehouse"
)

// TestReviewForAnother: a question to ana waits for ben once she has delegated to him; it names
// her, and he decides in his own name.
func TestReviewForAnother(t *testing.T) {
	t.Parallel()
	in := openInbox(t)
	ana := in.principal("ana", gatehouse.KindPerson, gatehouse.RoleApprover)
	ben := in.principal("ben", gatehouse.KindPerson, gatehouse.RoleApprover)
	source := strings.Replace(reviewPolicy, "3: {required: 1, roles: [approver]", "3: {required: 1, people: [ana]", 1)
	if _, err := in.n.Gate.ApplyPolicy(in.admin, source); err != nil {
		t.Fatal(err)
	}
	price := in.price("A", "10.00", "12.50")

	in.review(ben, seatOptions{}).ends(0) // nothing waits for him
	in.want(price, gatehouse.StatusPending)

	_, err := in.client(ana).
		CreateDelegation(t.Context(), gatehouse.NewDelegation{To: "ben", Ends: time.Now().Add(time.Hour)})
	must(t, err)
	// Both read the delegation; only the delegate's answer describes ana.
	for who, api := range map[string]gatehouse.DelegationService{"ana": in.client(ana), "ben": in.client(ben)} {
		list, err := api.ListDelegations(t.Context())
		if err != nil || len(list) != 1 || (list[0].Delegator != nil) != (who == "ben") {
			t.Fatalf("%s reads %+v, %v", who, list, err)
		}
	}
	s := in.review(ben, seatOptions{token: true, args: []string{"--yes"}})
	s.sees("1 of 1 · L3")
	s.sees("You answer for ana.")
	s.ready()
	s.types("a")
	s.sees("Approved: Change price of A")
	s.types("q")
	s.ends(0)
	if a := in.want(price, gatehouse.StatusApproved); a.DecidedBy != "ben" || a.Approval.Votes[0].ForName != "ana" {
		t.Errorf("decided by %s, %+v", a.DecidedBy, a.Approval.Votes)
	}
}
