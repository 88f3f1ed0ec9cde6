package serve

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/card"
	"github.com/gatehouse-dev/gatehouse/internal/demo"
	"github.com/gatehouse-dev/gatehouse/internal/term"
)

// terminalStage shows the demo on stderr.
type terminalStage struct {
	g *term.IO
	// tty and answers are set if the person at the terminal makes the decisions.
	tty     io.Writer
	answers chan string
}

func (t *terminalStage) Chapter(number, of int, title string) {
	t.g.Say("%s %s", term.Paint(t.g.ColorErr, term.Dim, fmt.Sprintf("%2d/%d", number, of)),
		term.Paint(t.g.ColorErr, term.Bold, term.Safe(title)))
}

const storyIndent = "      "

func (t *terminalStage) Say(line string) { t.lines("", "", line) }

func (t *terminalStage) Settled(l *demo.Line) {
	if l.Err != "" {
		t.lines("✗ ", term.Red, l.Err)
		return
	}
	t.lines("✓ ", term.Green, l.Outcome)
}

// lines writes a text under the title, wrapped to the terminal's width.
func (t *terminalStage) lines(mark, style, text string) {
	room := 0
	if t.g.TTY {
		room = max(t.g.Columns-len(storyIndent)-term.ColumnsOf(mark), 20)
	}
	for _, line := range term.Fill(text, room) {
		t.g.Say("%s%s%s", storyIndent, term.Paint(t.g.ColorErr, style, mark), line)
		mark = strings.Repeat(" ", term.ColumnsOf(mark))
	}
}

// ask reads answers from the person's terminal, until its end of file.
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
	t.lines("? ", term.Yellow, a.RiskLevel.String()+" "+card.RowText(a))
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
