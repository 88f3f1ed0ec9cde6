package serve

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/gatehouse-dev/gatehouse/internal/term"
)

// TestLogFoldsRepetitions: minutes without a store give a few lines instead of hundreds, and no
// different line is left out.
func TestLogFoldsRepetitions(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	h := newLogHandler(&out, "text", "info")
	began := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	say := func(after time.Duration, level slog.Level, message string, attrs ...slog.Attr) {
		t.Helper()
		r := slog.NewRecord(began.Add(after), level, message, 0)
		r.AddAttrs(attrs...)
		must(t, h.Handle(context.Background(), r))
	}
	lines := func() []string {
		defer out.Reset()
		return strings.Split(strings.TrimSpace(out.String()), "\n")
	}
	for i := range 150 {
		say(time.Duration(i)*time.Second, slog.LevelError, "claim failed", slog.String("error", "no database"))
	}
	got := lines()
	if len(got) != 3 || !strings.HasSuffix(got[1], "repeated=59") || !strings.HasSuffix(got[2], "repeated=59") {
		t.Errorf("150 times the same within 150 s: %q", got)
	}
	say(time.Hour, slog.LevelError, "claim failed", slog.String("error", "no disk"))
	say(time.Hour, slog.LevelWarn, "claim failed", slog.String("error", "no disk"))
	say(time.Hour, slog.LevelError, "rescue failed", slog.String("error", "no disk"))
	h = h.WithAttrs([]slog.Attr{slog.String("worker", "w1")})
	say(time.Hour, slog.LevelError, "claim failed", slog.String("error", "no disk"))
	if got := lines(); len(got) != 4 {
		t.Errorf("four that differ: %q", got)
	}
	for range 5 {
		say(time.Hour, slog.LevelInfo, "serving")
	}
	if got := lines(); len(got) != 5 {
		t.Errorf("a line that is not a warning must not be folded: %q", got)
	}
	for i := range 3 * maxFolds {
		say(2*time.Hour, slog.LevelError, "call failed", slog.String("push", fmt.Sprint(i)))
	}
	if got := lines(); len(got) != 3*maxFolds {
		t.Errorf("%d of %d that differ", len(got), 3*maxFolds)
	}
}

// TestLogLinesHoldNoHiddenCharacter logs the texts in both formats.
func TestLogLinesHoldNoHiddenCharacter(t *testing.T) {
	t.Parallel()
	for _, format := range []string{"json", "text"} {
		for _, text := range []string{
			"a\u202etxet\u202c", "1\u200d0\u200b0", "a\x1b[2J\x1b]0;owned\a", "a\u009b2J", "nul\x00", "a\nb",
			"a\r\nb\rc", "a\tb",
			"a\u2028b\u2029c", "a\U000e0041\U000e0042", "a\xff\xfe",
		} {
			var out bytes.Buffer
			slog.New(newLogHandler(&out, format, "info")).Info(text, "detail", text)
			said := strings.TrimSuffix(out.String(), "\n")
			if i := strings.IndexFunc(said, func(r rune) bool {
				return unicode.IsControl(r) ||
					term.Hidden(r)
			}); i >= 0 ||
				said == "" {
				t.Errorf("%s: %+q", format, said)
			}
		}
	}
}
