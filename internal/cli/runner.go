package cli

import (
	"strings"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/term"
)

// The part that all commands share. The parser makes the flags, the context and the client, and
// passes them to a Run as parameters; run turns the error of a Run into a message and an exit
// code. The functions below print the answer.

// printOutcome prints an answer: as JSON with --json, else by calling text. If there is an error,
// it returns it and does not call text.
func printOutcome(g *globals, answer any, err error, text func() error) error {
	switch {
	case err != nil:
		return err
	case g.JSON:
		return g.PrintJSON(answer)
	}
	return text()
}

// show prints an answer as the table that rows returns.
func show(g *globals, answer any, err error, rows func() *term.Table) error {
	return showList(g, answer, err, "", rows)
}

// showList is show for a list that may be empty; nothing is the text for that case on a terminal.
func showList(g *globals, answer any, err error, nothing string, rows func() *term.Table) error {
	return printOutcome(g, answer, err, func() error { return g.Print(rows(), nothing) })
}

// none returns the text for an empty list, with its filters: names, which may be misspelled, and values that
// were checked. A pipe does not get the text, so none prints it on stderr there if names are given.
func (g *globals) none(found int, err error, what, names, values string) string {
	if names == "" && values == "" {
		return "No " + what + "."
	}
	line := "No " + what + " with " + strings.Trim(names+", "+values, ", ") + "."
	if found == 0 && err == nil && names != "" && !g.TTY && !g.JSON {
		g.Say("%s", line)
	}
	return line
}

// filters joins filters, given as name and value in turn, without those whose value is "".
func filters(pairs ...string) string {
	var given []string
	for i := 0; i+1 < len(pairs); i += 2 {
		if pairs[i+1] != "" {
			given = append(given, pairs[i]+" "+gatehouse.QuoteWord(pairs[i+1]))
		}
	}
	return strings.Join(given, ", ")
}

// showPage is showList for a page, and says if there are more.
func showPage[T any](g *globals, page gatehouse.Page[T], err error, nothing string, rows func() *term.Table) error {
	err = showList(g, page, err, nothing, rows)
	if err == nil && !g.JSON && page.NextCursor != "" {
		g.Say("There are more: --all, or --cursor %s", term.Safe(page.NextCursor))
	}
	return err
}
