package term

import (
	"fmt"
	"strings"

	"github.com/gatehouse-dev/gatehouse"
)

// Count says how many, such as "2 actions".
func Count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// HashText is a hash as the API writes it.
func HashText(h gatehouse.Hash) string {
	b, _ := h.MarshalText()
	return string(b)
}

// EntryCount says how many entries of the log.
func EntryCount(n int64) string {
	if n == 1 {
		return "1 entry"
	}
	return fmt.Sprintf("%d entries", n)
}

// Fill makes a text safe, and breaks it at spaces into lines of at most room
// columns; room 0 does not break it.
func Fill(text string, room int) []string {
	lines := []string{""}
	for word := range strings.FieldsSeq(Safe(text)) {
		last := &lines[len(lines)-1]
		switch {
		case *last == "":
			*last = word
		case room == 0 || ColumnsOf(*last)+1+ColumnsOf(word) <= room:
			*last += " " + word
		default:
			lines = append(lines, word)
		}
	}
	return lines
}
