package cli

import (
	"strings"
	"testing"

	"github.com/gatehouse-dev/gatehouse"
)

// TestReviewInBulk selects two of four actions, sees their total effect and every
// change, approves them with Enter, and takes both back.
func TestReviewInBulk(t *testing.T) {
	t.Parallel()
	in := openInbox(t)
	ben := in.principal("ben", gatehouse.KindPerson, gatehouse.RoleApprover)
	lamp, vase, clock, wipe := in.price("A", "10.00", "12.50"), in.price("B", "20.00", "19.00"),
		in.note("C", "on the shelf"), in.wipe("A", "C")

	s := in.review(ben, seatOptions{token: true, args: []string{"--yes"}})
	s.sees("1 of 4 · L5")
	s.types("x")
	s.sees("Not selected: actions of L5 cannot be decided in bulk.")
	s.types("gb")
	s.sees("Nothing is selected: x selects the action that is open or marked.")
	s.types("jx")
	s.sees("1 selected. g then b shows them together.")
	s.types("j")
	s.sees("3 of 4")
	s.types("x")
	s.sees("2 selected. g then b")
	s.types("gb")
	s.sees("selection · 2 actions")
	s.sees("3.50 USD, net +1.50 in 2 actions; the largest is +2.50 USD: Change price of A")
	s.sees("2 × price_change")
	s.sees(`~ price "10.00" → "12.50" (+2.50 USD)`)
	s.sees(`~ price "20.00" → "19.00" (-1.00 USD)`)
	s.ready()
	s.types("a")
	s.sees("Enter: approve 2 actions, 3.50 USD, net +1.50 Esc: back") // despite --yes
	s.types("\x1b")
	s.sees("Nothing was sent.")
	in.want(lamp, gatehouse.StatusPending)
	s.types("a")
	s.sees("Enter: approve 2 actions")
	s.types(enter)
	s.sees("Approved: 2 of 2 actions. Nothing happens before their hold ends: u undoes them.")
	in.want(lamp, gatehouse.StatusApproved)
	in.want(vase, gatehouse.StatusApproved)
	s.sees("1 of 4 · L5") // what is still open
	s.types("u")
	s.sees("Undone: 2 actions are pending again.")
	s.types("q")
	out := s.ends(0)

	lamps := in.want(lamp, gatehouse.StatusSuperseded).Superseded
	vases := in.want(vase, gatehouse.StatusSuperseded).Superseded
	in.want(clock, gatehouse.StatusPending)
	in.want(wipe, gatehouse.StatusPending)
	want := lamp.ID + "\tapproved\n" + vase.ID + "\tapproved\n" +
		lamp.ID + "\tundone, pending as " + lamps + "\n" + vase.ID + "\tundone, pending as " + vases + "\n"
	if out != want {
		t.Errorf("printed\n%s\nwant\n%s", out, want)
	}
}

// TestReviewInBulkShowsAllFirst: a selection is approved only after all of it was on the screen,
// and actions that somebody else decided meanwhile are skipped.
func TestReviewInBulkShowsAllFirst(t *testing.T) {
	t.Parallel()
	in := openInbox(t)
	ben := in.principal("ben", gatehouse.KindPerson, gatehouse.RoleApprover)
	cleo := in.client(in.principal("cleo", gatehouse.KindPerson, gatehouse.RoleApprover))
	long := in.note("A", strings.Repeat("a line\n", 40)+"the last line")
	short := in.note("B", "on the shelf")

	s := in.review(ben, seatOptions{rows: 20, columns: 80})
	s.sees("1 of 2")
	s.types("xjx")
	s.sees("2 selected. g then b")
	s.types("gb")
	s.sees("selection · 2 actions")
	s.sees("space shows more of the change")
	s.ready()
	s.types("a")
	s.sees("of the selection not yet seen")
	s.types("\x1b[F") // the end, without the pages between
	s.sees("on the shelf")
	s.types("a")
	s.sees("of the selection not yet seen")
	s.types("\x1b[H")
	for range 4 {
		s.sees("selection")
		s.types(" ")
	}
	s.sees("a approve 2 actions")
	if _, err := cleo.Decide(t.Context(), short.ID,
		gatehouse.Decision{Decision: gatehouse.Approve, Digest: short.Digest}); err != nil {
		t.Fatal(err)
	}
	s.types("d")
	s.sees("Why do you reject 2 actions?")
	s.types("too long" + enter)
	s.sees("Your edit token")
	s.types(ben.EditToken + enter)
	s.sees("Rejected: 1 of 2 actions. Skipped: 1 (already_decided).")
	s.types("q")
	s.ends(0)
	held := in.want(long, gatehouse.StatusPending).Approval
	if held.RejectsAt == nil || held.Votes[0].Notes != "too long" {
		t.Errorf("%+v", held.Votes)
	}
	in.want(short, gatehouse.StatusApproved)
}

// TestReviewMovesAbout: the list, the filter, and jumps to a number or an id.
func TestReviewMovesAbout(t *testing.T) {
	t.Parallel()
	in := openInbox(t)
	ben := in.principal("ben", gatehouse.KindPerson, gatehouse.RoleApprover)
	in.price("A", "10.00", "12.50")
	in.price("B", "20.00", "19.00")
	in.note("C", "on the shelf")
	old := in.note("B", "over")
	if _, err := in.client(ben).Decide(t.Context(), old.ID,
		gatehouse.Decision{Decision: gatehouse.Reject, Notes: "no"}); err != nil {
		t.Fatal(err)
	}

	s := in.review(ben, seatOptions{token: true})
	s.sees("1 of 3")
	s.types("gi")
	s.sees("inbox · 3 actions")
	s.sees("> [ ] L3 Change price of A: 10.00 → 12.50 USD (+2.50 USD) · bot")
	s.types("jx")
	s.sees("> [x] L3 Change price of B: 20.00 → 19.00 USD (-1.00 USD) · bot")
	s.sees("inbox · 3 actions · 1 selected")
	s.types("a") // opens it: nothing is decided before it was shown
	s.sees("2 of 3")
	s.sees("Change price of B from 20.00 to 19.00 USD")
	s.sees("· selected")
	s.types("gr")
	s.sees("Runs: `gatehouse run list`.")
	s.types("gq") // g with an unknown key has no effect
	s.sees("2 of 3")

	s.types("/")
	s.sees("Show only actions with a word that begins with this text")
	s.types("supplier" + enter)
	s.sees("The selection was cleared")
	s.sees("1 of 2")
	s.sees(`with "supplier"`)
	s.types("/")
	s.sees("> supplier")
	s.types("\x15nothing like it" + enter)
	s.sees(`No action that waits for you has words that begin with "nothing like it", or this id.`)
	s.types("/")
	s.sees("> nothing like it")
	s.types("\x15" + enter)
	s.sees("1 of 3")

	s.types("\x0b3" + enter)
	s.sees("3 of 3")
	s.types("\x0b9" + enter)
	s.sees("There are 3 cards.")
	s.types("\x0b" + in.wipe("A", "C").ID + enter)
	s.sees("4 of 4 · L5")
	s.types("\x0b" + old.ID + enter)
	s.sees("is rejected: `gatehouse show")
	s.types("\x0b" + "act_none" + enter)
	s.sees("(not_found)")
	s.types("\x0b" + in.note("A", "x").ID + enter)
	s.sees("5 of 5")
	s.types("q")
	s.ends(0)
}
