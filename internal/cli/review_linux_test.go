package cli

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/client"
	"github.com/gatehouse-dev/gatehouse/internal/term"
)

const enter = "\r"

// TestReviewLadder decides one action of each level, from L5 to L2.
func TestReviewLadder(t *testing.T) {
	t.Parallel()
	in := openInbox(t)
	ben := in.principal("ben", gatehouse.KindPerson, gatehouse.RoleApprover)
	note, price, item, wipe := in.note("A", "on the shelf"), in.price("B", "20.00", "21.50"), in.item("D", "Chair"),
		in.wipe("A", "C")

	s := in.review(ben, seatOptions{args: []string{"--yes"}})
	s.sees("1 of 4 · L5 destructive or bulk")
	s.sees("Delete 2 items")
	s.sees("A, C")
	s.ready()
	s.types("a")
	s.sees("Type 2, the number of item records affected")
	s.types("3" + enter)
	s.sees("That is not the value asked for.")
	s.types("\x1b[200~2\x1b[201~")
	s.sees("Type this value; it cannot be pasted.")
	s.types("2" + enter)
	s.sees("Your edit token")
	s.types("gte_wrong" + enter)
	s.sees("(edit_token_required)")
	in.want(wipe, gatehouse.StatusPending)
	s.types("a")
	s.sees("Type 2")
	s.types("2" + enter)
	s.sees("Your edit token")
	s.types(ben.EditToken)
	if shown := s.sees("••••"); strings.Contains(shown, ben.EditToken) {
		t.Error("the edit token is on the screen")
	}
	s.types(enter)
	s.sees("Your vote is recorded: 1 of 2 approvals.")

	s.sees("2 of 4 · L4")
	s.sees("Create item D with name Chair")
	s.ready()
	s.types("a")
	s.sees("Type the new name Chair")
	s.types("Chair" + enter)
	s.sees("Your edit token")
	s.types(ben.EditToken + enter)
	s.sees("Approved: Create item D.")

	// --yes skips the question at L3, but not the edit token. Below L4 the token is asked for once.
	s.sees("3 of 4 · L3")
	s.sees("Change price of B from 20.00 to 21.50 USD; reversible")
	s.ready()
	s.types("a")
	s.sees("Your edit token")
	s.types(ben.EditToken + enter)
	s.sees("Approved: Change price of B. It is sent after 1 h; press u before then to undo it.")

	s.sees("4 of 4 · L2")
	s.ready()
	s.types("a")
	s.sees("Approved: Change note of A")
	s.sees("No more actions.")
	s.until("can undo", func(flat string) bool { return strings.Contains(flat, "r reload") })
	s.types("u")
	s.sees("Undone: it is pending again, as act_")
	s.types("q")
	out := s.ends(0)

	again := in.want(note, gatehouse.StatusSuperseded).Superseded
	in.want(price, gatehouse.StatusApproved)
	in.want(item, gatehouse.StatusApproved)
	if a := in.want(wipe, gatehouse.StatusPending); a.Approval.Approvals() != 1 {
		t.Errorf("%d approvals", a.Approval.Approvals())
	}
	want := wipe.ID + "\tvote_recorded\n" + item.ID + "\tapproved\n" + price.ID + "\tapproved\n" +
		note.ID + "\tapproved\n" + note.ID + "\tundone, pending as " + again + "\n"
	if out != want {
		t.Errorf("printed\n%s\nwant\n%s", out, want)
	}
}

// TestReviewByKeys: moving, L3 by its named button, reasons, why, help.
func TestReviewByKeys(t *testing.T) {
	t.Parallel()
	in := openInbox(t)
	ben := in.principal("ben", gatehouse.KindPerson, gatehouse.RoleApprover)
	first, second := in.price("A", "10.00", "12.50"), in.price("B", "20.00", "19.00")

	s := in.review(ben, seatOptions{token: true, args: []string{"--json"}})
	s.sees("1 of 2")
	s.sees(`~ price "10.00" → "12.50" (+2.50 USD)`)
	s.sees("… 1 field is unchanged; enter shows them")
	s.sees("Rationale, in the words of bot")
	s.types(enter)
	s.sees(`/currency "USD" (unchanged)`)
	s.types("w")
	s.sees("Policy: needs_approval")
	s.types("?")
	s.sees("undo your last decision, before it has an effect")
	s.types("x")
	s.sees("1 of 2")
	s.types("j")
	s.sees("2 of 2")
	s.sees("Change price of B from 20.00 to 19.00 USD")
	s.types("j")
	s.sees("No more actions.")
	s.types("kk")
	s.sees("1 of 2")
	s.ready()
	s.types("a")
	s.sees("Enter: Change price to 12.50 USD Esc: back")
	s.types("a") // is not Enter
	s.types("\x1b")
	s.sees("Nothing was sent.")
	in.want(first, gatehouse.StatusPending)
	s.types("a")
	s.sees("Enter: Change price to 12.50 USD")
	s.types(enter)
	s.sees("Approved: Change price of A.")
	s.sees("2 of 2")
	s.ready()
	s.types("d")
	s.sees("Why do you reject it?")
	s.types(enter)
	s.sees("An answer is needed")
	s.types("the list says 19.90" + enter)
	s.sees("Rejected: Change price of B. The agent is notified after 1 h; press u before then to undo it.")
	s.types("u")
	s.sees("Undone: it is pending again, as act_")
	again := in.want(second, gatehouse.StatusSuperseded).Superseded
	s.types("k")
	s.sees("2 of 2 · L3")
	s.ready()
	s.types("d")
	s.sees("Why do you reject it?")
	s.types("the list says 19.90" + enter)
	s.sees("Rejected: Change price of B.")
	s.types("q")
	out := s.ends(0)
	if !s.screen.colored {
		t.Error("there are no colours")
	}

	in.want(first, gatehouse.StatusApproved)
	second, err := in.bot.FindAction(t.Context(), again)
	must(t, err)
	held := in.want(second, gatehouse.StatusPending).Approval
	if v := held.Votes[0]; held.RejectsAt == nil || v.Notes != "the list says 19.90" || v.Via != gatehouse.ViaClient {
		t.Errorf("%+v", held.Votes)
	}
	squeezed := regexp.MustCompile(`\s`).ReplaceAllString(out, "")
	want := `{"items":[{"action_id":"` + first.ID + `","result":"approved"},` +
		`{"action_id":"` + second.Supersedes + `","result":"rejected"},` +
		`{"action_id":"` + second.Supersedes + `","result":"undone,pendingas` + second.ID + `"},` +
		`{"action_id":"` + second.ID + `","result":"rejected"}]}`
	if squeezed != want {
		t.Errorf("printed %s, want %s", squeezed, want)
	}
}

// TestReviewConflicts: somebody else is first, and the target changes.
func TestReviewConflicts(t *testing.T) {
	t.Parallel()
	in := openInbox(t)
	ben := in.principal("ben", gatehouse.KindPerson, gatehouse.RoleApprover)
	cleo := in.client(in.principal("cleo", gatehouse.KindPerson, gatehouse.RoleApprover))
	first, second := in.price("A", "10.00", "12.50"), in.price("B", "20.00", "19.00")

	s := in.review(ben, seatOptions{token: true, args: []string{"-y"}})
	s.sees("1 of 2")
	s.ready()
	if _, err := cleo.Decide(t.Context(), first.ID,
		gatehouse.Decision{Decision: gatehouse.Reject, Notes: "no"}); err != nil {
		t.Fatal(err)
	}
	s.types("a")
	s.sees("Decided by cleo")
	s.sees("; the action is rejected")
	s.sees("rejected (cleo)")
	s.types("a")
	s.sees("You have voted on this action, or it has been decided; j opens the next one.")

	s.types("j")
	s.sees("2 of 2")
	s.ready()
	if _, err := in.shop.ExecContext(t.Context(),
		`update items set price = '22.00', version = 2 where sku = 'B'`); err != nil {
		t.Fatal(err)
	}
	s.types("a")
	s.sees("(target_changed)")
	// The write is conditional on the version, so it would fail if it were approved.
	s.sees("It cannot be carried out unchanged: press b to propose it on the present state, or reject it.")
	in.want(second, gatehouse.StatusPending)
	s.types("b")
	s.sees("on the present state: target version")
	next := in.want(second, gatehouse.StatusSuperseded).Superseded
	s.ready()
	s.types("b")
	s.sees("The target of this action is not reported as changed.")
	s.types("d")
	s.sees("Why do you reject it?")
	s.types("too dear now" + enter)
	s.sees("Rejected: Change price of B.")
	s.types("q")
	s.ends(0)
	if a, err := in.bot.FindAction(t.Context(), next); err != nil || a.Approval.RejectsAt == nil ||
		a.RebasedBy != "ben" {
		t.Errorf("the revision: %+v, %v", a, err)
	}
}

// TestReviewShowsAllFirst: a change cannot be approved before all of it was on the screen.
func TestReviewShowsAllFirst(t *testing.T) {
	t.Parallel()
	in := openInbox(t)
	ben := in.principal("ben", gatehouse.KindPerson, gatehouse.RoleApprover)
	var text strings.Builder
	for i := range 60 {
		text.WriteString("line " + string(rune('a'+i%26)) + "\n")
	}
	long := in.note("A", text.String()+"the last line")

	s := in.review(ben, seatOptions{token: true, rows: 20, columns: 60})
	s.sees("1 of 1")
	s.sees("space shows more of the change")
	s.ready()
	s.types("a")
	s.sees("of the change not yet seen")
	s.types("\x1b[F") // the end, without the pages between
	s.sees("digest")
	s.types("a")
	s.sees("of the change not yet seen")
	s.types("\x1b[H")
	for range 4 {
		s.sees("1 of 1")
		s.types(" ")
	}
	s.sees("the last line")
	s.sees("a approve · d reject")
	in.want(long, gatehouse.StatusPending)
	s.types("a")
	s.sees("Approved: Change note of A")
	s.types("q")
	s.ends(0)
	in.want(long, gatehouse.StatusApproved)
}

// TestReviewNarrow: a narrow screen without colours truncates nothing.
func TestReviewNarrow(t *testing.T) {
	t.Parallel()
	in := openInbox(t)
	ben := in.principal("ben", gatehouse.KindPerson, gatehouse.RoleApprover)
	price := in.price("A", "10.00", "12.50")
	s := in.review(ben, seatOptions{token: true, rows: 24, columns: 26, env: []string{"NO_COLOR=1"}})
	flat := s.sees("1 of 1")
	s.until("sees the change", func(flat string) bool {
		return strings.Contains(strings.ReplaceAll(flat, " ", ""), `~price"10.00"→"12.50"(+2.50USD)`)
	})
	s.ready()
	s.types("a")
	s.sees("Enter: Change price to 12.50 USD Esc: back")
	s.types(enter)
	s.sees("Approved: Change price of A.")
	s.types("\x1b")
	s.ends(0)
	in.want(price, gatehouse.StatusApproved)
	if s.screen.colored {
		t.Errorf("there are colours despite NO_COLOR:\n%s", flat)
	}
}

// TestReviewSecondVoteIsBlind: at L5 the second person gives a reason before
// seeing the first one's.
func TestReviewSecondVoteIsBlind(t *testing.T) {
	t.Parallel()
	in := openInbox(t)
	ben := in.principal("ben", gatehouse.KindPerson, gatehouse.RoleApprover)
	cleo := in.client(in.principal("cleo", gatehouse.KindPerson, gatehouse.RoleApprover))
	wipe := in.wipe("A", "B")
	_, err := cleo.Decide(t.Context(), wipe.ID, gatehouse.Decision{
		Decision: gatehouse.Approve, Digest: wipe.Digest, Confirm: wipe.Approval.Confirm.Value, Notes: "out of range",
	})
	must(t, err)
	s := in.review(ben, seatOptions{token: true, rows: 60, columns: 100})
	s.sees("1 of 1")
	if flat := s.ready(); strings.Contains(flat, "out of range") || strings.Contains(flat, "cleo") {
		t.Errorf("the first vote is shown: %s", flat)
	}
	s.types("a")
	s.sees("Type 2")
	s.types("2" + enter)
	s.sees("Why do you approve it?")
	s.types("discontinued" + enter)
	s.sees("Your edit token") // although it is in the environment
	s.types(ben.EditToken + enter)
	s.sees("Approved: Delete 2 items.")
	s.types("q")
	s.ends(0)
	if a := in.want(wipe, gatehouse.StatusApproved); a.Approval.Votes[1].Notes != "discontinued" {
		t.Errorf("%+v", a.Approval.Votes)
	}
}

// TestReviewEdits: the edited text becomes a revision.
func TestReviewEdits(t *testing.T) {
	t.Parallel()
	in := openInbox(t)
	eve := in.principal("eve", gatehouse.KindPerson, gatehouse.RoleApprover, gatehouse.RoleProposer)
	price := in.price("A", "10.00", "12.50")
	editor := filepath.Join(t.TempDir(), "editor")
	must(t, os.WriteFile(editor, []byte("#!/bin/sh\nsed -i 's/12\\.50/12.75/' \"$1\"\n"), 0o700))
	s := in.review(eve, seatOptions{token: true, env: []string{"EDITOR=" + editor}})
	s.sees("1 of 1")
	s.ready()
	s.types("e")
	s.sees("Enter: replace it with your revision, which somebody else decides")
	s.types(enter)
	s.sees("Replaced by act_")
	s.types("q")
	s.ends(0)
	old := in.want(price, gatehouse.StatusSuperseded)
	revised, err := in.bot.FindAction(t.Context(), old.Superseded)
	if err != nil || revised.ProposedChange != `{"price":"12.75"}` || revised.ProposedBy != "eve" {
		t.Errorf("%+v, %v", revised, err)
	}
}

// TestReviewReadsTheTarget: a card shows the target's present values beside those that the agent claims.
func TestReviewReadsTheTarget(t *testing.T) {
	t.Parallel()
	in := openInbox(t)
	ben := in.principal("ben", gatehouse.KindPerson, gatehouse.RoleApprover)
	in.price("A", "10.00", "12.50")
	in.price("B", "20.00", "21.50")
	moved := `update items set price = '11.00', version = 2 where sku = 'A'`
	if _, err := in.shop.ExecContext(t.Context(), moved); err != nil {
		t.Fatal(err)
	}
	s := in.review(ben, seatOptions{token: true})
	s.sees("Change price of A from 11.00 (the agent says 10.00) to 12.50 USD")
	s.sees("target not as bot says: propose it on the present state")
	s.sees(`! price "10.00" → "11.00"`)
	s.sees(`~ price "11.00" → "12.50"`)
	s.ready()
	s.types("b")
	s.sees("Change price of A from 11.00 to 12.50 USD")
	s.types("j")
	s.sees("target read from shop: as bot says")
	s.types("q")
	s.ends(0)
}

// TestReviewShowsTheConversation: the questions about an action, and their answers, are on its card.
func TestReviewShowsTheConversation(t *testing.T) {
	t.Parallel()
	in := openInbox(t)
	ana := in.principal("ana", gatehouse.KindPerson, gatehouse.RoleApprover)
	ben := in.principal("ben", gatehouse.KindPerson, gatehouse.RoleApprover)
	a := in.price("A", "10.00", "12.50")
	say := func(c *client.Client, r gatehouse.CommentRequest) {
		t.Helper()
		if _, err := c.Comment(t.Context(), a.ID, r); err != nil {
			t.Fatal(err)
		}
	}
	say(in.client(ana), gatehouse.CommentRequest{Text: "why so much?", Kind: gatehouse.CommentQuestion})
	say(in.bot, gatehouse.CommentRequest{Text: "the supplier \x1b[2Jraised it", Answers: 1})

	s := in.review(ben, seatOptions{token: true})
	s.sees("1. ana asks bot")
	s.sees("│ why so much?")
	s.sees("2. bot answers 1")
	s.sees("│ the supplier <U+001B>[2Jraised it")
	s.types("q")
	s.ends(0)
}

func TestReviewNeedsATerminal(t *testing.T) {
	t.Parallel()
	cmd := exec.CommandContext(t.Context(), watched, "review")
	cmd.Env = cleanEnv("GATEHOUSE_URL=http://127.0.0.1:1", "GATEHOUSE_KEY=gth_x")
	out, _ := cmd.CombinedOutput()
	if code := cmd.ProcessState.ExitCode(); code != term.ExitUsage ||
		!strings.Contains(string(out), "needs a terminal as its stdin") {
		t.Errorf("exit code %d, %s", code, out)
	}
}

// TestReviewOfNothing: review ends at once if nothing is pending, or if the person may decide nothing.
func TestReviewOfNothing(t *testing.T) {
	t.Parallel()
	in := openInbox(t)
	ben := in.principal("ben", gatehouse.KindPerson, gatehouse.RoleApprover)
	s := in.review(ben, seatOptions{token: true})
	s.ends(0)
	if text := s.screen.flat(); !strings.Contains(text, "Nothing waits for a decision.") {
		t.Errorf("got %s", text)
	}
	viewer := in.principal("vic", gatehouse.KindPerson, gatehouse.RoleViewer)
	s = in.review(viewer, seatOptions{})
	s.ends(term.ExitNotAllowed)
	if text := s.screen.flat(); !strings.Contains(text, "only a person with the role approver decides") {
		t.Errorf("got %s", text)
	}
}
