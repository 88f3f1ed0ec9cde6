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
	packages := 0
	places := 0
	for _, pkg := range []string{"usecase", "gate", "runs"} {
		files, err := filepath.Glob("../" + pkg + "/*.go")
		if err != nil {
			t.Fatal(err)
		}
		if len(files) > 0 {
			packages++
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
	if packages != 3 {
		t.Errorf("%d packages have use cases, want 3", packages)
	}
	if places != 2 {
		t.Errorf("usecase.go looks up or stores answers in %d places, want one of each", places)
	}
}
