package bench

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"runtime"
	"strconv"
)

// Printer prints lines: as a table while they arrive, or as one JSON document at the end. Progress
// is shown on a terminal only.
type Printer struct {
	out, progress io.Writer
	json, tty     bool
	about         string
	lines         []Line
}

// NewPrinter makes a printer that writes to out: JSON if asJSON is true, else a table. If tty is true, it
// writes the progress to progress.
func NewPrinter(out, progress io.Writer, asJSON, tty bool) *Printer {
	return &Printer{out: out, progress: progress, json: asJSON, tty: tty, lines: []Line{}}
}

// About prints the description of the engine.
func (p *Printer) About(store string) {
	if p.about = store; !p.json {
		fmt.Fprintln(p.out, store)
	}
}

const clearLine = "\r\x1b[K"

// Progress shows the present activity, replacing the previous one.
func (p *Printer) Progress(what string) {
	if p.tty {
		_, _ = io.WriteString(p.progress, clearLine+what)
	}
}

// Line prints one measured value.
func (p *Printer) Line(l Line) {
	p.lines = append(p.lines, l)
	if p.json {
		return
	}
	if p.tty {
		_, _ = io.WriteString(p.progress, clearLine)
	}
	if len(p.lines) == 1 {
		fmt.Fprintf(p.out, "%-50s %26s %26s %22s  %s\n", "figure", "gate", "baseline", "ratio", "target; the baseline")
	}

	fmt.Fprintf(p.out, "%-50s %26s %26s %22s  %s; %s\n", l.Name+" ["+l.Unit+"]",
		l.Ours.show(), l.Bare.show(), l.Ratio.show(), l.target(), l.Baseline)
}

// Close ends the progress and prints the document.
func (p *Printer) Close() error {
	if p.tty {
		_, _ = io.WriteString(p.progress, clearLine)
	}
	if !p.json {
		return nil
	}
	e := json.NewEncoder(p.out)
	e.SetIndent("", "  ")
	return e.Encode(struct {
		CPUs  int    `json:"cpus"`
		OS    string `json:"os"`
		Arch  string `json:"arch"`
		Go    string `json:"go"`
		Store string `json:"store"`
		Lines []Line `json:"lines"`
	}{runtime.NumCPU(), runtime.GOOS, runtime.GOARCH, runtime.Version(), p.about, p.lines})
}

// show formats the median with the minimum and the maximum.
func (s Spread) show() string {
	return number(s.Median) + " (" + number(s.Min) + " – " + number(s.Max) + ")"
}

// number formats a value with three significant digits; from 0.1 to 1 with two, and from 100 on as
// an integer.
func number(v float64) string {
	switch a := math.Abs(v); {
	case a >= 100:
		return strconv.FormatFloat(v, 'f', 0, 64)
	case a >= 10:
		return strconv.FormatFloat(v, 'f', 1, 64)
	case a >= 0.1:
		return strconv.FormatFloat(v, 'f', 2, 64)
	}
	return strconv.FormatFloat(v, 'g', 3, 64)
}

// target formats the target and whether the median meets it.
func (l *Line) target() string {
	if l.Target == 0 {
		return "no target"
	}
	sign, met := "≥ ", "missed"
	if l.Lower {
		sign = "≤ "
	}
	if l.Met() {
		met = "met"
	}
	unit := " ×"
	if l.Absolute {
		unit = " " + l.Unit
	}
	return sign + number(l.Target) + unit + " " + met
}
