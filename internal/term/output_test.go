package term

import (
	"strings"
	"testing"
	"time"
)

func TestPrintPiped(t *testing.T) {
	t.Parallel()
	g, out, errOut := piped(t)
	tab := &Table{Header: []string{"A", "B"}}
	tab.Add("one", "two\tthree\nfour")
	tab.Add("", "\x1b[31m")
	if err := g.Print(tab, "none"); err != nil {
		t.Fatal(err)
	}
	if want := "one\ttwo<U+0009>three<U+000A>four\n\t<U+001B>[31m\n"; out.String() != want {
		t.Errorf("got %q, want %q", out, want)
	}
	if errOut.Len() > 0 {
		t.Errorf("words on stderr: %q", errOut)
	}
	out.Reset()
	if err := g.Print(&Table{Header: []string{"A"}}, "none"); err != nil || out.Len() > 0 {
		t.Errorf("an empty list prints %q, %v", out, err)
	}
}

func TestPrintOnTerminal(t *testing.T) {
	t.Parallel()
	g, out, errOut := piped(t)
	g.TTY, g.Columns = true, 36
	tab := &Table{Header: []string{"ID", "CHANGE", "BY"}, Wide: 1}
	tab.Add("act_1", "a change that is much too long for this", "ana")
	tab.Add("act_2", "漢字", "ben")
	if err := g.Print(tab, "none"); err != nil {
		t.Fatal(err)
	}
	want := "" +
		"ID     CHANGE                    BY\n" +
		"act_1  a change that is much     ana\n" +
		"       too long for this\n" +
		"act_2  漢字                      ben\n"
	if out.String() != want {
		t.Errorf("got\n%s\nwant\n%s", out, want)
	}
	if strings.Contains(out.String(), "\x1b") {
		t.Error("colour without being asked")
	}
	out.Reset()
	if err := g.Print(&Table{Header: []string{"A"}}, "Nothing there."); err != nil || out.Len() > 0 ||
		errOut.String() != "Nothing there.\n" {
		t.Errorf("an empty list prints %q, %q, %v", out, errOut, err)
	}
}

// TestPrintWithoutTheWideColumn: on a narrow terminal the wide column can be dropped, and stays dropped.
func TestPrintWithoutTheWideColumn(t *testing.T) {
	t.Parallel()
	g, out, _ := piped(t)
	g.TTY, g.Columns = true, 16
	tab := &Table{Header: []string{"ID", "STATE", "BROWSER"}, Wide: 2, Drop: []int{2, 1}}
	tab.Add("ses_0001", "live", strings.Repeat("long ", 20))
	if err := g.Print(tab, "none"); err != nil {
		t.Fatal(err)
	}
	if want := "ID        STATE\nses_0001  live\n"; out.String() != want {
		t.Errorf("got %q, want %q", out, want)
	}
}

func TestPrintInColor(t *testing.T) {
	t.Parallel()
	g, out, _ := piped(t)
	g.TTY, g.Color = true, true
	tab := &Table{Header: []string{"STATUS"}, Paint: func(_ int, cell string) string {
		if cell == "applied" {
			return Green
		}
		return ""
	}}
	tab.Add("applied")
	tab.Add("\x1b[31mfailed")
	if err := g.Print(tab, ""); err != nil {
		t.Fatal(err)
	}
	if want := "\x1b[1mSTATUS\x1b[0m\n\x1b[32mapplied\x1b[0m\n<U+001B>[31mfailed\n"; out.String() != want {
		t.Errorf("got %q, want %q", out, want)
	}
}

func TestDistance(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	for d, want := range map[time.Duration]string{
		0: "now", 5 * time.Minute: "in 5m", 80 * time.Minute: "in 1h",
		59600 * time.Millisecond: "in 1m", time.Hour - 20*time.Second: "in 1h", 48*time.Hour - time.Minute: "in 2d",
		24*time.Hour - time.Second: "in 24h", 72 * time.Hour: "in 3d",
		-3 * time.Second: "3s ago", -119 * time.Minute: "1h ago", -47 * time.Hour: "47h ago",
	} {
		if got := Distance(now, now.Add(d)); got != want {
			t.Errorf("%s: got %q, want %q", d, got, want)
		}
	}
}

func TestProgressOnlyOnTerminal(t *testing.T) {
	t.Parallel()
	g, _, errOut := piped(t)
	g.Progress("verify", 1, 2)
	if errOut.Len() > 0 {
		t.Errorf("progress without a terminal: %q", errOut)
	}
	g.TTYErr = true
	g.Progress("verify", 1, 2)
	if errOut.String() != "verify 1 of 2 (50 %)\r" {
		t.Errorf("got %q", errOut)
	}
}
