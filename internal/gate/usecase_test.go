package gate_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestAnswersAreStoredInOnePlace: only once looks up an earlier answer and stores
// the new one, which are easy to forget in a use case.
func TestAnswersAreStoredInOnePlace(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	call := regexp.MustCompile(`\b(answered|remember|InsertIdempotency)\(`)
	places := 0
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") || file == "idempotency.go" {
			continue
		}
		source, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		found := call.FindAllString(string(source), -1)
		if file == "usecase.go" {
			places = len(found)
		} else if len(found) > 0 {
			t.Errorf("%s calls %q: use perform", file, found)
		}
	}
	if places != 2 {
		t.Errorf("usecase.go asks and stores in %d places, want one each", places)
	}
}
