package console

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestNoticesHaveWords: each kind of notice that the gate's source names has words of its own.
func TestNoticesHaveWords(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("../gate/*.go")
	if err != nil {
		t.Fatal(err)
	}
	kinds := 0
	for _, file := range files {
		source, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		for _, m := range regexp.MustCompile(`\bkind(?::|(?:, [^=]*)? =) "([a-z_]+\.[a-z_]+)"`).FindAllSubmatch(source, -1) {
			kinds++
			if kind := string(m[1]); noticeKinds[kind] == "" {
				t.Errorf("%s of %s has no words", kind, file)
			}
		}
	}
	if kinds < 10 {
		t.Errorf("only %d kinds were found", kinds)
	}
}
