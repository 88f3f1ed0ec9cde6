package cli

import (
	"strings"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/term"
)

// The functions below print the answers of all commands. The parser passes the globals and the client to
// the Run method of a command as parameters; the function run turns the error of a Run method into a message
// and an exit code.

// printOutcome prints an answer: as JSON with --json, else by calling text. If err is not nil, printOutcome
// prints nothing and returns err.
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

// showList is show for a list that may be empty; nothing is the text for an empty list on a terminal.
func showList(g *globals, answer any, err error, nothing string, rows func() *term.Table) error {
	return printOutcome(g, answer, err, func() error { return g.Print(rows(), nothing) })
}

// none returns the text for an empty list and its filters. names are the filters whose values may be
// misspelled, values the filters whose values were checked. Print writes the text on a terminal only. In a
// pipe without --json, none itself prints the text on stderr if the list is empty and names is not "".
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

// showPage is showList for a page, and says on stderr if there are further pages.
func showPage[T any](g *globals, page gatehouse.Page[T], err error, nothing string, rows func() *term.Table) error {
	err = showList(g, page, err, nothing, rows)
	if err == nil && !g.JSON && page.NextCursor != "" {
		g.Say("There are more: --all, or --cursor %s", term.Safe(page.NextCursor))
	}
	return err
}
