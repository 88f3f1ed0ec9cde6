package console

import (
	"regexp"
	"strings"
)

// sourcePart is a part of a line of YAML; class is "" for plain text.
type sourcePart struct{ class, text string }

// The parts of a line that are shown in colour: comments, quoted texts, keys, and numbers or
// constants. The editor's script does the same.
var sourceTokens = regexp.MustCompile(
	`(?:^|\s)(#.*)|("(?:\\.|[^"\\])*"|'[^']*')|([\w.-]+):(?:\s|$)|\b(\d+(?:\.\d+)?|true|false|null)\b`)

var sourceClasses = []string{"src-c", "src-s", "src-k", "src-n"}

// sourceParts splits a line of YAML for display. The parts together are the line.
func sourceParts(line string) (parts []sourcePart) {
	plain := func(text string) {
		if text != "" {
			parts = append(parts, sourcePart{"", text})
		}
	}
	for line != "" {
		if len(parts) > 0 { // a # right after a token begins no comment
			rest := strings.TrimLeft(line, "#")
			plain(line[:len(line)-len(rest)])
			line = rest
		}
		m := sourceTokens.FindStringSubmatchIndex(line)
		if m == nil {
			break
		}
		for i, class := range sourceClasses {
			from, to := m[2+2*i], m[3+2*i]
			if from < 0 {
				continue
			}
			plain(line[:from])
			parts = append(parts, sourcePart{class, line[from:to]})
			line = line[to:]
			break
		}
	}
	plain(line)
	return parts
}

// sourceLines are the lines of a text.
func sourceLines(source string) []string {
	return strings.Split(strings.TrimSuffix(source, "\n"), "\n")
}
