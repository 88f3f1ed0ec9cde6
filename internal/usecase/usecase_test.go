package usecase_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestAnswersAreStoredInOnePlace: only Once looks up an earlier answer and stores the new one,
// because a use case could forget either.
func TestAnswersAreStoredInOnePlace(t *testing.T) {
	t.Parallel()
	call := regexp.MustCompile(`\b(answered|remember|FindIdempotency|InsertIdempotency)\(`)
	rooms := 0
	places := 0
	for _, room := range []string{"usecase", "gate", "runs"} {
		files, err := filepath.Glob("../" + room + "/*.go")
		if err != nil {
			t.Fatal(err)
		}
		if len(files) > 0 {
			rooms++
		}
		for _, file := range files {
			if strings.HasSuffix(file, "_test.go") || file == "../usecase/idempotency.go" {
				continue
			}
			source, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			found := call.FindAllString(string(source), -1)
			if file == "../usecase/usecase.go" {
				places = len(found)
			} else if len(found) > 0 {
				t.Errorf("%s calls %q: use Perform", file, found)
			}
		}
	}
	if rooms != 3 {
		t.Errorf("%d rooms have use cases, want 3", rooms)
	}
	if places != 2 {
		t.Errorf("usecase.go asks and stores in %d places, want one each", places)
	}
}
