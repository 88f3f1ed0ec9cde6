package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"
)

// Data goes to stdout, words to stderr. Data is a table on a terminal,
// tab-separated lines without a header when piped, and with --json the API's
// document.

// say prints a line of words to stderr.
func (g *termIO) say(format string, args ...any) {
	fmt.Fprintf(g.stderr, format+"\n", args...)
}

// printJSON prints one document to stdout.
func (g *termIO) printJSON(v any) error { return writeJSON(g.stdout, v) }

func writeJSON(w io.Writer, v any) error {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(v); err != nil {
		return err
	}
	_, err := w.Write(safeJSON(b.Bytes()))
	return err
}

// table is what a command prints when it is not asked for JSON. Its cells are
// raw: printing makes them safe.
type table struct {
	header []string
	rows   [][]string
	// wide is the column that is wrapped between words when the terminal is too
	// narrow; drop are those that are left out, one by one, when that is not enough.
	wide int
	drop []int
	// paint returns the colour of a cell, "" for none.
	paint func(column int, cell string) string
}

func (t *table) add(cells ...string) { t.rows = append(t.rows, cells) }

// print prints a table, or says that there is nothing.
func (g *termIO) print(t *table, nothing string) error {
	if !g.tty {
		var b bytes.Buffer
		for _, row := range t.rows {
			for i, cell := range row {
				if i > 0 {
					b.WriteByte('\t')
				}
				b.WriteString(safe(cell))
			}
			b.WriteByte('\n')
		}
		_, err := g.stdout.Write(b.Bytes())
		return err
	}
	if len(t.rows) == 0 {
		g.say("%s", nothing)
		return nil
	}
	_, err := g.stdout.Write(t.aligned(g.columns, g.color))
	return err
}

const columnGap = 2

// minWide is what the wide column keeps at least.
const minWide = 24

func (t *table) aligned(columns int, color bool) []byte {
	lines := make([][]string, 0, len(t.rows)+1)
	lines = append(lines, t.header)
	for _, row := range t.rows {
		line := make([]string, len(row))
		for i, cell := range row {
			line[i] = safe(cell)
		}
		lines = append(lines, line)
	}
	widths := t.fit(lines, columns)
	last := len(widths) - 1
	for last > 0 && widths[last] < 0 {
		last--
	}
	var b bytes.Buffer
	for n, line := range lines {
		var more []string // how the wide column goes on
		for i, cell := range line {
			if widths[i] < 0 {
				continue
			}
			if i == t.wide {
				parts := wrapped(cell, widths[i])
				cell, more = parts[0], parts[1:]
			}
			style := ""
			switch {
			case n == 0:
				style = bold
			case t.paint != nil:
				style = t.paint(i, cell)
			}
			b.WriteString(paint(color, style, cell))
			if i < last {
				b.WriteString(strings.Repeat(" ", widths[i]-columnsOf(cell)+columnGap))
			}
		}
		b.WriteByte('\n')
		before := 0
		for _, w := range widths[:t.wide] {
			if w >= 0 {
				before += w + columnGap
			}
		}
		for _, part := range more {
			b.WriteString(strings.Repeat(" ", before) + part + "\n")
		}
	}
	return b.Bytes()
}

// wrapped cuts safe text between words into lines of at most n columns.
func wrapped(s string, n int) []string {
	var lines []string
	for n > 0 && columnsOf(s) > n {
		head := cutAtWord(s, n)
		lines = append(lines, strings.TrimRight(head, " "))
		s = s[len(head):]
	}
	return append(lines, s)
}

// fit returns the width of each column, -1 for one that is left out.
func (t *table) fit(lines [][]string, columns int) []int {
	widths := make([]int, len(t.header))
	for _, line := range lines {
		for i, cell := range line {
			widths[i] = max(widths[i], columnsOf(cell))
		}
	}
	over := -columns - columnGap
	for _, w := range widths {
		over += w + columnGap
	}
	full := widths[t.wide]
	for _, i := range t.drop {
		if over <= max(full-minWide, 0) {
			break
		}
		over -= widths[i] + columnGap
		widths[i] = -1
	}
	if over > 0 {
		widths[t.wide] = max(full-over, min(full, minWide))
	}
	return widths
}

// The styles of a terminal.
const (
	bold   = "1"
	dim    = "2"
	red    = "31"
	green  = "32"
	yellow = "33"
	blue   = "34"
)

func paint(color bool, style, s string) string {
	if !color || style == "" || s == "" {
		return s
	}
	return "\x1b[" + style + "m" + s + "\x1b[0m"
}

// at shows a time: exactly when piped, as a distance on a terminal.
func (g *termIO) at(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	if g.tty {
		return distance(g.now(), t)
	}
	return t.UTC().Format(time.RFC3339)
}

func (g *termIO) atPtr(t *time.Time) string {
	if t == nil {
		return ""
	}
	return g.at(*t)
}

// distance says how far t lies from now, such as "3m ago" or "in 4h".
func distance(now, t time.Time) string {
	d := t.Sub(now)
	form, past := "in %s", d < 0
	if past {
		form, d = "%s ago", -d
	}
	var s string
	switch {
	case d < time.Second:
		return "now"
	case d < time.Minute:
		s = fmt.Sprintf("%ds", d/time.Second)
	case d < time.Hour:
		s = fmt.Sprintf("%dm", d/time.Minute)
	case d < 48*time.Hour:
		s = fmt.Sprintf("%dh", d/time.Hour)
	default:
		s = fmt.Sprintf("%dd", d/(24*time.Hour))
	}
	return fmt.Sprintf(form, s)
}

// progress shows how far long work is, on a terminal only.
func (g *termIO) progress(word string, done, total int64) {
	if !g.ttyErr || g.json {
		return
	}
	end := "\r"
	if done >= total {
		end = "\n"
	}
	fmt.Fprintf(g.stderr, "%s %d of %d (%d %%)%s", word, done, total, done*100/max(total, 1), end)
}
