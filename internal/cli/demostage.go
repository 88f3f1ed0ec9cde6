package cli

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/card"
	"github.com/gatehouse-dev/gatehouse/internal/demo"
)

// terminalStage tells the play on stderr.
type terminalStage struct {
	g *globals
	// tty and answers are set when the person who watches is asked.
	tty     io.Writer
	answers chan string
}

func (t *terminalStage) Chapter(number, of int, title string) {
	t.g.say("%s %s", paint(t.g.colorErr, dim, fmt.Sprintf("%2d/%d", number, of)), paint(t.g.colorErr, bold, safe(title)))
}

const storyIndent = "      "

func (t *terminalStage) Say(line string) { t.lines("", "", line) }

func (t *terminalStage) Settled(l *demo.Line) {
	if l.Err != "" {
		t.lines("✗ ", red, l.Err)
		return
	}
	t.lines("✓ ", green, l.Outcome)
}

// lines writes a text under the title, folded to the terminal.
func (t *terminalStage) lines(mark, style, text string) {
	room := 0
	if t.g.tty {
		room = max(t.g.columns-len(storyIndent)-columnsOf(mark), 20)
	}
	for _, line := range wrap(text, room) {
		t.g.say("%s%s%s", storyIndent, paint(t.g.colorErr, style, mark), line)
		mark = strings.Repeat(" ", columnsOf(mark))
	}
}

// ask reads answers from the person's terminal. The reader ends with it.
func (t *terminalStage) ask(tty io.ReadWriter) {
	t.tty, t.answers = tty, make(chan string)
	go func() {
		defer close(t.answers)
		for lines := bufio.NewScanner(tty); lines.Scan(); {
			t.answers <- lines.Text()
		}
	}()
}

func (t *terminalStage) Ask(ctx context.Context, who string, a *gatehouse.Action) (demo.Choice, error) {
	if t.answers == nil {
		return demo.Undecided, nil
	}
	t.lines("? ", yellow, a.RiskLevel.String()+" "+card.RowText(a))
	for {
		fmt.Fprintf(t.tty, "%s  As %s, who approves: [a] approve, [d] reject, [Enter] let the demo decide > ",
			storyIndent, who)
		select {
		case <-ctx.Done():
			return demo.Undecided, ctx.Err()
		case answer, open := <-t.answers:
			switch strings.ToLower(strings.TrimSpace(answer)) {
			case "a":
				return demo.Approved, nil
			case "d":
				return demo.Rejected, nil
			case "":
				if !open {
					fmt.Fprintln(t.tty)
				}
				return demo.Undecided, nil
			}
		}
	}
}
