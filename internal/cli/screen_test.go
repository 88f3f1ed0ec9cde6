package cli

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/gatehouse-dev/gatehouse/internal/term"
)

// screen is what a person sees of a terminal: it keeps the characters that a program writes at
// their positions. It supports the sequences of full-screen programs (ECMA-48 and the usual private
// modes), and fails on others.
type screen struct {
	rows, columns int
	cells         [][]rune
	x, y          int
	top, bottom   int // of the scroll region
	wrap          bool
	last          rune
	pending       []byte
	colored       bool     // a colour was set
	odd           []string // unknown sequences
}

func newScreen(rows, columns int) *screen {
	s := &screen{rows: rows, columns: columns, bottom: rows - 1}
	s.cells = make([][]rune, rows)
	for i := range s.cells {
		s.cells[i] = blank(columns)
	}
	return s
}

func blank(n int) []rune { return []rune(strings.Repeat(" ", n)) }

// text is the screen's lines, without the blanks at their ends.
func (s *screen) text() string {
	lines := make([]string, s.rows)
	for i, row := range s.cells {
		lines[i] = strings.TrimRight(strings.ReplaceAll(string(row), "\x00", ""), " ")
	}
	return strings.TrimRight(strings.Join(lines, "\n"), "\n")
}

// flat is the text with line ends and runs of blanks as one blank.
func (s *screen) flat() string { return strings.Join(strings.Fields(s.text()), " ") }

// Write takes output, in pieces of any size.
func (s *screen) Write(b []byte) (int, error) {
	s.pending = append(s.pending, b...)
	for len(s.pending) > 0 {
		n := s.one(s.pending)
		if n == 0 {
			break // incomplete
		}
		s.pending = s.pending[n:]
	}
	return len(b), nil
}

// one takes one character or sequence, and returns its length; 0 when there is
// more to come.
func (s *screen) one(b []byte) int {
	switch c := b[0]; {
	case c == 0x1b:
		return s.escape(b)
	case c == '\r':
		s.x, s.wrap = 0, false
	case c == '\n':
		s.feed()
	case c == '\b':
		s.x, s.wrap = max(s.x-1, 0), false
	case c == '\t':
		s.x = min(s.x/8*8+8, s.columns-1)
	case c == 7 || c == 0:
	case c < 0x20:
		s.odd = append(s.odd, fmt.Sprintf("control %#x", c))
	default:
		if !utf8.FullRune(b) {
			return 0
		}
		r, size := utf8.DecodeRune(b)
		s.put(r)
		return size
	}
	return 1
}

func (s *screen) put(r rune) {
	width := term.ColumnsOf(string(r))
	if width == 0 {
		return
	}
	if s.wrap || s.x+width > s.columns {
		s.x, s.wrap = 0, false
		s.feed()
	}
	s.last = r
	s.cells[s.y][s.x] = r
	for i := 1; i < width; i++ {
		s.cells[s.y][s.x+i] = 0
	}
	if s.x += width; s.x >= s.columns {
		s.x, s.wrap = s.columns-1, true
	}
}

func (s *screen) feed() {
	if s.y == s.bottom {
		s.shift(s.top, 1)
		return
	}
	s.y = min(s.y+1, s.rows-1)
}

// shift moves the lines from a row to the end of the region up by n, or down if n is negative.
func (s *screen) shift(from, n int) {
	for ; n > 0; n-- {
		copy(s.cells[from:s.bottom+1], s.cells[from+1:s.bottom+1])
		s.cells[s.bottom] = blank(s.columns)
	}
	for ; n < 0; n++ {
		copy(s.cells[from+1:s.bottom+1], s.cells[from:s.bottom])
		s.cells[from] = blank(s.columns)
	}
}

func (s *screen) escape(b []byte) int {
	if len(b) < 2 {
		return 0
	}
	switch b[1] {
	case '[':
		end := 2
		for end < len(b) && (b[end] < 0x40 || b[end] > 0x7e) {
			end++
		}
		if end == len(b) {
			return 0
		}
		s.control(string(b[2:end]), b[end])
		return end + 1
	case ']', 'P', '_':
		for i := 2; i < len(b); i++ {
			if b[i] == 7 {
				return i + 1
			}
			if b[i] == 0x1b && i+1 < len(b) && b[i+1] == '\\' {
				return i + 2
			}
		}
		return 0
	case 'M':
		if s.y == s.top {
			s.shift(s.top, -1)
		} else {
			s.y = max(s.y-1, 0)
		}
		return 2
	case '7', '8', '=', '>', 'c':
		return 2
	case '(', ')':
		return min(3, len(b)/3*3)
	}
	s.odd = append(s.odd, fmt.Sprintf("escape %q", b[1]))
	return 2
}

// control executes a control sequence.
func (s *screen) control(params string, final byte) {
	if params != "" && strings.ContainsRune("?<=>", rune(params[0])) || strings.ContainsAny(params, "$ !\"") {
		if params == "?1049" && final == 'h' || params == "?1049" && final == 'l' {
			*s = screen{rows: s.rows, columns: s.columns, cells: newScreen(s.rows, s.columns).cells, bottom: s.rows - 1,
				pending: s.pending, colored: s.colored, odd: s.odd}
		}
		return // modes and questions
	}
	var args []int
	for _, p := range strings.Split(params, ";") {
		n, _ := strconv.Atoi(p)
		args = append(args, n)
	}
	n := max(args[0], 1)
	row := s.cells[s.y]
	s.wrap = s.wrap && final == 'm'
	switch final {
	case 'm':
		for _, a := range args {
			s.colored = s.colored || 30 <= a && a <= 49 || 90 <= a
		}
	case 'H', 'f':
		column := 1
		if len(args) > 1 {
			column = max(args[1], 1)
		}
		s.y, s.x = min(n, s.rows)-1, min(column, s.columns)-1
	case 'A':
		s.y = max(s.y-n, 0)
	case 'B', 'e':
		s.y = min(s.y+n, s.rows-1)
	case 'C', 'a':
		s.x = min(s.x+n, s.columns-1)
	case 'D':
		s.x = max(s.x-n, 0)
	case 'E':
		s.y, s.x = min(s.y+n, s.rows-1), 0
	case 'F':
		s.y, s.x = max(s.y-n, 0), 0
	case 'G', '`':
		s.x = min(n, s.columns) - 1
	case 'd':
		s.y = min(n, s.rows) - 1
	case 'I':
		for range n {
			s.x = min(s.x/8*8+8, s.columns-1)
		}
	case 'Z':
		for range n {
			s.x = max((s.x-1)/8*8, 0)
		}
	case 'J':
		s.erase(args[0])
	case 'K':
		from, to := s.x, s.columns
		switch args[0] {
		case 1:
			from, to = 0, s.x+1
		case 2:
			from = 0
		}
		copy(row[from:to], blank(to-from))
	case 'X':
		copy(row[s.x:min(s.x+n, s.columns)], blank(n))
	case '@':
		n = min(n, s.columns-s.x)
		copy(row[s.x+n:], row[s.x:])
		copy(row[s.x:s.x+n], blank(n))
	case 'P':
		n = min(n, s.columns-s.x)
		copy(row[s.x:], row[s.x+n:])
		copy(row[s.columns-n:], blank(n))
	case 'b':
		for range n {
			s.put(s.last)
		}
	case 'L':
		s.shift(s.y, -n)
	case 'M':
		s.shift(s.y, n)
	case 'S':
		s.shift(s.top, n)
	case 'T':
		s.shift(s.top, -n)
	case 'r':
		s.top, s.bottom = 0, s.rows-1
		if len(args) > 1 && args[1] > 0 {
			s.top, s.bottom = n-1, args[1]-1
		}
		s.x, s.y = 0, 0
	case 'c', 'n', 't', 'q', 'u', 's', 'g':
	default:
		s.odd = append(s.odd, fmt.Sprintf("control %q%c", params, final))
	}
}

func (s *screen) erase(what int) {
	from, to := s.y*s.columns+s.x, s.rows*s.columns
	switch what {
	case 1:
		from, to = 0, from+1
	case 2, 3:
		from = 0
	}
	for i := from; i < to; i++ {
		s.cells[i/s.columns][i%s.columns] = ' '
	}
}

func TestScreen(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ in, want string }{
		{"one\r\ntwo", "one\ntwo"},
		{"abcdefghijkl", "abcdefghij\nkl"},
		{"abc\x1b[2DX", "aXc"},
		{"\x1b[2;3Hx\x1b[1;1Hy", "y\n  x"},
		{"abc\x1b[1;2H\x1b[K", "a"},
		{"a\x1b[3bc", "aaaac"},
		{"1\r\n2\r\n3\r\n4", "2\n3\n4"},
		{"1\r\n2\r\n3\x1b[1;1H\x1b[M", "2\n3"},
		{"1\r\n2\r\n3\x1b[2;3r\x1b[3;1H\nx", "1\n3\nx"},
		{"\x1b[31mred\x1b[0m\x1b[?25l\x1b]0;t\x07\x1b[J", "red"},
		{"漢x", "漢x"},
		{"abc\x1b[1;1H\x1b[2X\x1b[P", " c"},
	} {
		s := newScreen(3, 10)
		for _, b := range []byte(c.in) {
			_, _ = s.Write([]byte{b})
		}
		if s.text() != c.want || len(s.odd) > 0 {
			t.Errorf("%q: got %q, want %q; %v", c.in, s.text(), c.want, s.odd)
		}
	}
}
