package tui

import (
	"fmt"
	"strings"
	"testing"

	tea "charm.land/bubbletea/v2"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/sheet"
)

// show replaces the first card's texts, and shows it as a new card.
func show(m *reviewer, before, after string) *item {
	it := m.items[0]
	it.action.CurrentState = gatehouse.MustJSON(map[string]string{"note": before})
	it.action.ProposedChange = gatehouse.MustJSON(map[string]string{"note": after})
	it.action.Digest = it.action.ComputeDigest()
	m.appear()
	m.Update(armMsg(m.cards))
	return it
}

// numbered returns n lines of text, each with its number.
func numbered(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "line %d\n", i)
	}
	return b.String()
}

// refuses presses a, and fails unless the approval is refused because of lines that were not shown.
func refuses(t *testing.T, m *reviewer) {
	t.Helper()
	if press(m, "a") != nil || m.draft != nil || !strings.Contains(m.message, "not yet seen") {
		t.Fatalf("approved with %d of %d lines shown: %q", m.seen, m.page.payload, m.message)
	}
}

// readOn presses space until the card can be approved, and returns what was on the screen.
func readOn(t *testing.T, m *reviewer) string {
	t.Helper()
	shown := m.View().Content
	for range 100 {
		if m.unseen() == "" {
			return shown
		}
		m.Update(tea.KeyPressMsg{Code: tea.KeySpace})
		shown += m.View().Content
	}
	t.Fatalf("space does not show the rest: %s", m.unseen())
	return ""
}

var enterKey = tea.KeyPressMsg{Code: tea.KeyEnter}

// TestFoldedLinesAreNotSeen: scrolling through unfolded lines does not count for the lines that
// follow them on the folded page.
func TestFoldedLinesAreNotSeen(t *testing.T) {
	t.Parallel()
	m := testReviewer(t)
	text := numbered(200)
	show(m, text, "first\n"+text+numbered(50)+"last")
	m.Update(enterKey)
	for range 4 {
		m.scroll(m.body() - 1)
	}
	m.Update(enterKey)
	refuses(t, m)
	if shown := readOn(t, m); !strings.Contains(shown, "+ last") || !strings.Contains(shown, "+ line 0") {
		t.Errorf("a line is not shown: %s", shown)
	}
	if press(m, "a") == nil {
		t.Errorf("not approved after everything was shown: %s", m.message)
	}
}

// TestResizedLinesAreNotSeen: lines that were never on the screen do not count as seen after the screen has become
// wider, nor those that were scrolled while the screen was too small to show anything.
func TestResizedLinesAreNotSeen(t *testing.T) {
	t.Parallel()
	m := testReviewer(t)
	m.Update(tea.WindowSizeMsg{Width: 20, Height: 24})
	show(m, "", strings.Repeat("a long line of text that is wrapped\n", 60))
	for range 4 {
		m.scroll(m.body() - 1)
	}
	m.Update(tea.WindowSizeMsg{Width: 120, Height: 24})
	refuses(t, m)
	readOn(t, m)

	m = testReviewer(t)
	show(m, "", numbered(60))
	m.Update(tea.WindowSizeMsg{Width: 80, Height: 4})
	for range 80 {
		m.scroll(1)
	}
	m.Update(tea.WindowSizeMsg{Width: 80, Height: 24})
	refuses(t, m)
	readOn(t, m)

	m = testReviewer(t)
	show(m, "", numbered(60))
	press(m, "?")
	m.Update(tea.WindowSizeMsg{Width: 80, Height: 60})
	if m.seen > 24 {
		t.Errorf("%d lines count as seen behind the help", m.seen)
	}
	press(m, "?")
	if m.seen <= 24 {
		t.Errorf("only %d lines count as seen after the help", m.seen)
	}
}

// TestALineAboveTheScreenIsNotSeen: the state of the target that arrives while the person has scrolled down must be
// on the screen before an approval; space goes there.
func TestALineAboveTheScreenIsNotSeen(t *testing.T) {
	t.Parallel()
	m := testReviewer(t)
	it := show(m, "", numbered(60))
	readOn(t, m)
	m.Update(targetRead{item: it, digest: it.action.Digest, target: sheet.Target{Why: "the target is out of order"}})
	m.Update(armMsg(m.cards))
	refuses(t, m)
	if shown := readOn(t, m); !strings.Contains(shown, "the target is out of order") {
		t.Errorf("the target's state is not on the screen: %s", shown)
	}
}

// TestPreviewDuringAQuestion: a preview that differs from the proposal and arrives while an approval is being
// confirmed is shown before the approval is sent.
func TestPreviewDuringAQuestion(t *testing.T) {
	t.Parallel()
	refused := &gatehouse.Preview{Failure: &gatehouse.PreviewFailure{Code: "x", Detail: strings.Repeat("no. ", 500)}}
	for name, c := range map[string]struct {
		long bool // the preview does not fit on the screen
		text string
	}{"a long preview": {long: true, text: numbered(3)}, "a short preview": {text: "x"}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := testReviewer(t)
			m.items[0].action.RiskLevel = gatehouse.L3
			it := show(m, "", c.text)
			if readOn(t, m); press(m, "a") != nil || len(m.questions) != 1 {
				t.Fatalf("no question: %s", m.message)
			}
			p := *refused
			if !c.long {
				p.Failure = &gatehouse.PreviewFailure{Code: "x", Detail: "the books are closed"}
			}
			m.Update(previewRead{item: it, digest: it.action.Digest, preview: sheet.Preview{Answer: &p}})
			if _, cmd := m.Update(enterKey); cmd != nil || m.busy || len(m.questions) != 1 {
				t.Fatal("Enter approves right after the preview has appeared")
			}
			m.Update(armMsg(m.cards))
			_, cmd := m.Update(enterKey)
			if sent := cmd != nil; sent == c.long {
				t.Fatalf("sent: %v; %s", sent, m.message)
			}
			if c.long && (m.draft != nil || len(m.questions) > 0 || !strings.Contains(m.message, "not yet seen")) {
				t.Errorf("the approval is not dropped: %s", m.message)
			}
		})
	}
}
