package term

import (
	"fmt"
	"strings"

	"github.com/gatehouse-dev/gatehouse"
)

// Count formats a number with a noun, such as "2 actions".
func Count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// HashText formats a hash as the API does.
func HashText(h gatehouse.Hash) string {
	b, _ := h.MarshalText()
	return string(b)
}

// EntryCount formats a number of log entries.
func EntryCount(n int64) string {
	if n == 1 {
		return "1 entry"
	}
	return fmt.Sprintf("%d entries", n)
}

// Fill makes a text safe and breaks it at spaces into lines of at most room columns; a longer word gets a line of its
// own. With room 0, Fill does not break the text.
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
