package rest_test

import (
	"testing"

	"github.com/gatehouse-dev/gatehouse/connector/internal/rest"
)

func TestSameText(t *testing.T) {
	t.Parallel()
	for other, want := range map[string]bool{
		"a\n\n b":             true,
		"\n a \t\r\n\r\n b\n": true,
		"a\r\r b":             true,
		"a\n b":               false, // a paragraph less
		"a\n\nb":              false, // an indentation less
		"a\n\n b c":           false,
		"":                    false,
	} {
		if rest.SameText("a\n\n b", other) != want || rest.SameText(other, "a\n\n b") != want {
			t.Errorf("%q: want %v", other, want)
		}
	}
}
