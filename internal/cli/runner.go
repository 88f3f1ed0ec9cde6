package cli

import (
	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/term"
)

// What every command has in common. The parser makes the flags, the context and
// the client, which a Run asks for by its parameters; what Run returns becomes a
// message and an exit code in run. What is left is the answer: these print it.

// tell prints an answer: with --json as it is, else in the words of text. Where there
// is an error instead, it is returned, and text is not called.
func tell(g *globals, answer any, err error, text func() error) error {
	switch {
	case err != nil:
		return err
	case g.JSON:
		return g.PrintJSON(answer)
	}
	return text()
}

// show tells an answer as the table that rows makes of it.
func show(g *globals, answer any, err error, rows func() *term.Table) error {
	return showList(g, answer, err, "", rows)
}

// showList is show for a list, which may be empty: on a terminal, nothing says so.
func showList(g *globals, answer any, err error, nothing string, rows func() *term.Table) error {
	return tell(g, answer, err, func() error { return g.Print(rows(), nothing) })
}

// showPage is showList for a page, after which there may be more.
func showPage[T any](g *globals, page gatehouse.Page[T], err error, nothing string, rows func() *term.Table) error {
	err = showList(g, page, err, nothing, rows)
	if err == nil && !g.JSON && page.NextCursor != "" {
		g.Say("There are more: --all, or --cursor %s", term.Safe(page.NextCursor))
	}
	return err
}
