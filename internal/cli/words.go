package cli

import (
	"fmt"
	"strings"

	"github.com/gatehouse-dev/gatehouse"
)

// count says how many, such as "2 actions".
func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// hashText is a hash as the API writes it.
func hashText(h gatehouse.Hash) string {
	b, _ := h.MarshalText()
	return string(b)
}

// entryCount says how many entries of the log.
func entryCount(n int64) string {
	if n == 1 {
		return "1 entry"
	}
	return fmt.Sprintf("%d entries", n)
}

// wrap makes a text safe, and breaks it at spaces into lines of at most room
// columns; room 0 does not break it.
func wrap(text string, room int) []string {
	lines := []string{""}
	for word := range strings.FieldsSeq(safe(text)) {
		last := &lines[len(lines)-1]
		switch {
		case *last == "":
			*last = word
		case room == 0 || columnsOf(*last)+1+columnsOf(word) <= room:
			*last += " " + word
		default:
			lines = append(lines, word)
		}
	}
	return lines
}
