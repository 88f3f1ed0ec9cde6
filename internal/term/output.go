package term

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"
)

// Data goes to stdout, messages go to stderr. Data is a table on a terminal, tab-separated lines
// without a header in a pipe, and the API's document with --json.

// Say prints a message line to stderr.
func (g *IO) Say(format string, args ...any) {
	fmt.Fprintf(g.Stderr, format+"\n", args...)
}

// PrintJSON prints one document to stdout.
func (g *IO) PrintJSON(v any) error { return WriteJSON(g.Stdout, v) }

// WriteJSON writes one document with all invisible characters escaped.
func WriteJSON(w io.Writer, v any) error {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(v); err != nil {
		return err
	}
	_, err := w.Write(SafeJSON(b.Bytes()))
	return err
}

// Table is a command's output without --json. Its cells are raw; printing makes them safe.
type Table struct {
	Header []string
	Rows   [][]string
	// Wide is the column that is wrapped between words if the terminal is too narrow. Drop lists
	// the columns that are left out, one by one, if that is not enough.
	Wide int
	Drop []int
	// Paint returns the style of a cell, such as [Green], or "" for none. cell is the safe text; of a
	// wrapped cell, it is the first line, and only that line is painted.
	Paint func(column int, cell string) string
}

// Row makes a table of one row.
func Row(header []string, cells ...string) *Table {
	return &Table{Header: header, Rows: [][]string{cells}}
}

// Add adds a row.
func (t *Table) Add(cells ...string) { t.Rows = append(t.Rows, cells) }

// Print prints a table to stdout. If stdout is a terminal and the table has no rows, it prints the message
// ifEmpty to stderr instead.
func (g *IO) Print(t *Table, ifEmpty string) error {
	if !g.TTY {
		var b bytes.Buffer
		for _, row := range t.Rows {
			for i, cell := range row {
				if i > 0 {
					b.WriteByte('\t')
				}
				b.WriteString(Safe(cell))
			}
			b.WriteByte('\n')
		}
		_, err := g.Stdout.Write(b.Bytes())
		return err
	}
	if len(t.Rows) == 0 {
		g.Say("%s", ifEmpty)
		return nil
	}
	_, err := g.Stdout.Write(t.aligned(g.Columns, g.Color))
	return err
}

// ColumnGap is the number of spaces between two columns of a table.
const ColumnGap = 2

// minWide is the minimum width of the wide column.
const minWide = 24

func (t *Table) aligned(columns int, color bool) []byte {
	lines := make([][]string, 0, len(t.Rows)+1)
	lines = append(lines, t.Header)
	for _, row := range t.Rows {
		line := make([]string, len(row))
		for i, cell := range row {
			line[i] = Safe(cell)
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
		var more []string // further lines of the wide column
		for i, cell := range line {
			if widths[i] < 0 {
				continue
			}
			if i == t.Wide {
				parts := wrapped(cell, widths[i])
				cell, more = parts[0], parts[1:]
			}
			style := ""
			switch {
			case n == 0:
				style = Bold
			case t.Paint != nil:
				style = t.Paint(i, cell)
			}
			b.WriteString(Paint(color, style, cell))
			if i < last {
				b.WriteString(strings.Repeat(" ", widths[i]-ColumnsOf(cell)+ColumnGap))
			}
		}
		b.WriteByte('\n')
		before := 0
		for _, w := range widths[:t.Wide] {
			if w >= 0 {
				before += w + ColumnGap
			}
		}
		for _, part := range more {
			b.WriteString(strings.Repeat(" ", before) + part + "\n")
		}
	}
	return b.Bytes()
}

// fit returns the width of each column, -1 for an omitted one.
func (t *Table) fit(lines [][]string, columns int) []int {
	widths := make([]int, len(t.Header))
	for _, line := range lines {
		for i, cell := range line {
			widths[i] = max(widths[i], ColumnsOf(cell))
		}
	}
	over := -columns - ColumnGap
	for _, w := range widths {
		over += w + ColumnGap
	}
	full := widths[t.Wide]
	shrink := max(full-minWide, 0)
	for _, i := range t.Drop {
		if over <= shrink {
			break
		}
		over -= widths[i] + ColumnGap
		widths[i] = -1
		if i == t.Wide {
			shrink = 0
		}
	}
	if over > 0 && widths[t.Wide] >= 0 {
		widths[t.Wide] = max(full-over, min(full, minWide))
	}
	return widths
}

// The styles of a terminal.
const (
	Bold   = "1"
	Dim    = "2"
	Red    = "31"
	Green  = "32"
	Yellow = "33"
	Blue   = "34"
)

// Paint colours a text if color is true.
func Paint(color bool, style, s string) string {
	if !color || style == "" || s == "" {
		return s
	}
	return "\x1b[" + style + "m" + s + "\x1b[0m"
}

// At formats a time: exact in a pipe, relative on a terminal.
func (g *IO) At(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	if g.TTY {
		return Distance(g.Now(), t)
	}
	return t.UTC().Format(time.RFC3339)
}

// AtPtr is At for a pointer; "" for nil.
func (g *IO) AtPtr(t *time.Time) string {
	if t == nil {
		return ""
	}
	return g.At(*t)
}

// Distance formats the difference between t and now, such as "3m ago" or "in 4h". It rounds the
// past down and the future to the nearest unit, so that 24 hours are still "in 24h" a moment
// later.
func Distance(now, t time.Time) string {
	d := t.Sub(now)
	form, rounded := "in %s", time.Duration.Round
	if d < 0 {
		form, d, rounded = "%s ago", -d, time.Duration.Truncate
	}
	count := func(unit time.Duration) int64 { return int64(rounded(d, unit) / unit) }
	var s string
	switch {
	case d < time.Second:
		return "now"
	case rounded(d, time.Second) < time.Minute:
		s = fmt.Sprintf("%ds", count(time.Second))
	case rounded(d, time.Minute) < time.Hour:
		s = fmt.Sprintf("%dm", count(time.Minute))
	case rounded(d, time.Hour) < 48*time.Hour:
		s = fmt.Sprintf("%dh", count(time.Hour))
	default:
		s = fmt.Sprintf("%dd", count(24*time.Hour))
	}
	return fmt.Sprintf(form, s)
}

// Progress shows the progress of a long operation on stderr, if stderr is a terminal and --json is not given.
func (g *IO) Progress(word string, done, total int64) {
	if !g.TTYErr || g.JSON {
		return
	}
	end := "\r"
	if done >= total {
		end = "\n"
	}
	fmt.Fprintf(g.Stderr, "%s %d of %d (%d %%)%s", word, done, total, done*100/max(total, 1), end)
}
