package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/term"
)

// hostileWords are texts that a terminal executes, or that look like another text.
var hostileWords = []string{
	// Overrides, isolates and joiners.
	"a\u202etxet\u202c a\u2066b\u2069 1\u200d0\u200b0",
	// Escape sequences of seven bits and of eight, and a null character.
	"a\x1b[2J\x1b]0;owned\a a\u009b2J a\x00b",
	// Digits and letters of other alphabets, tags, invalid UTF-8, and many marks on one letter.
	"1\u0661\u0662.00 p\u0430ypal a\U000e0041\U000e0042 a\xff\xfe e" + strings.Repeat("\u0301", 40),
	"a\nact_000000000000 applied a\r\nb\rc a\tapplied a\u2028b\u2029c",
}

// obeyed reports whether a command must not print a character unchanged.
func obeyed(r rune) bool {
	return r != '\n' && r != '\t' && (unicode.IsControl(r) || term.Hidden(r) || r == 0x0430 || r > 0x7f &&
		unicode.IsDigit(r))
}

// filled puts a text into every string of a value, however deep.
func filled(v reflect.Value, text string, depth int) {
	switch v.Type() {
	case reflect.TypeFor[time.Time]():
		v.Set(reflect.ValueOf(time.Date(2026, 11, 20, 11, 0, 0, 0, time.UTC)))
		return
	case reflect.TypeFor[gatehouse.JSON]():
		v.SetString(string(gatehouse.ObjectJSON(gatehouse.Member{Name: text, Value: gatehouse.StringJSON(text)})))
		return
	case reflect.TypeFor[gatehouse.Decimal]():
		v.SetString("12.50")
		return
	case reflect.TypeFor[gatehouse.RiskLevel]():
		v.SetInt(3)
		return
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString(text)
	case reflect.Pointer:
		if depth > 0 {
			v.Set(reflect.New(v.Type().Elem()))
			filled(v.Elem(), text, depth-1)
		}
	case reflect.Slice:
		if depth > 0 && v.Type().Elem().Kind() != reflect.Uint8 {
			v.Set(reflect.MakeSlice(v.Type(), 1, 1))
			filled(v.Index(0), text, depth-1)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				filled(v.Field(i), text, depth)
			}
		}
	case reflect.Int, reflect.Int64:
		v.SetInt(1)
	case reflect.Bool:
		v.SetBool(true)
	}
}

// hostileAnswer is a value of a type with a text in every string: all texts, or one in each item of a page.
func hostileAnswer[T any]() any {
	v := reflect.ValueOf(new(T)).Elem()
	filled(v, strings.Join(hostileWords, " "), 6)
	if items := v.FieldByName("Items"); items.IsValid() {
		v.FieldByName("NextCursor").SetString("") // it is the last page
		items.Set(reflect.MakeSlice(items.Type(), len(hostileWords), len(hostileWords)))
		for i, text := range hostileWords {
			filled(items.Index(i), text, 5)
		}
	}
	return v.Interface()
}

// hostileEntries are entries of the audit log with a text in every string of the leaf.
func hostileEntries() any {
	page := gatehouse.Page[*gatehouse.Entry]{}
	for _, text := range hostileWords {
		leaf := reflect.ValueOf(new(gatehouse.Leaf))
		filled(leaf.Elem(), text, 6)
		page.Items = append(page.Items, &gatehouse.Entry{Body: gatehouse.MustJSON(leaf.Interface())})
	}
	return page
}

// TestCommandsPrintHostileTextAsText runs the commands against a server whose answers have hostile
// text in every string, on a terminal and piped.
func TestCommandsPrintHostileTextAsText(t *testing.T) {
	t.Parallel()
	text := strings.Join(hostileWords, " ")
	for _, c := range []struct {
		args   string
		path   string
		answer func() any
		// rows is how many lines are printed, piped; 0 for any number.
		rows int
	}{
		{"list", "/proposed-actions", hostileAnswer[gatehouse.Page[*gatehouse.Action]], 4},
		{"show act_1", "/proposed-actions/act_1", hostileAnswer[gatehouse.Action], 0},
		{"run list", "/runs", hostileAnswer[gatehouse.Page[*gatehouse.Run]], 4},
		{"push list", "/pushes", hostileAnswer[gatehouse.Page[*gatehouse.Push]], 4},
		{"dlq list", "/dead-letters", hostileAnswer[gatehouse.Page[*gatehouse.DeadLetter]], 4},
		{"workflow list", "/workflows", hostileAnswer[gatehouse.Page[*gatehouse.WorkflowSummary]], 4},
		{"principal list", "/principals", hostileAnswer[gatehouse.Page[*gatehouse.Principal]], 4},
		{"applied", "/applied", hostileAnswer[gatehouse.Page[*gatehouse.AppliedMirror]], 4},
		{"corpus", "/corpus", hostileAnswer[gatehouse.Page[*gatehouse.CorpusEntry]], 4},
		{"admin notices", "/notices", hostileAnswer[gatehouse.Page[*gatehouse.Notice]], 4},
		{"session list", "/sessions", hostileAnswer[gatehouse.Page[*gatehouse.Session]], 4},
		{"audit tail", "/audit/entries", hostileEntries, 4},
		{"policy explain -f -", "/policies/explain", hostileAnswer[gatehouse.Explanation], 0},
	} {
		for _, tty := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/terminal %v", c.args, tty), func(t *testing.T) {
				t.Parallel()
				reached := false
				var asked []string
				s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					w.Header().Set("Content-Type", "application/json")
					path := strings.TrimPrefix(r.URL.Path, "/api/v1")
					if path == "/audit/head" {
						_ = json.NewEncoder(w).Encode(gatehouse.LogHead{Tenant: text, Size: 1})
						return
					}
					if path == "/audit/entries" && reached { // there are no more
						_ = json.NewEncoder(w).Encode(gatehouse.Page[*gatehouse.Entry]{Items: []*gatehouse.Entry{}})
						return
					}
					// An action is shown with the actions that it names.
					const one = "/proposed-actions/"
					if path != c.path && (!strings.HasPrefix(c.path, one) || !strings.HasPrefix(path, one)) {
						asked = append(asked, r.URL.Path)
						w.Header().Set("Content-Type", "application/problem+json")
						w.WriteHeader(http.StatusNotFound)
						_ = json.NewEncoder(w).Encode(map[string]any{"code": "not_found", "status": 404,
							"detail": text, "hint": text})
						return
					}
					reached = true
					if err := json.NewEncoder(w).Encode(c.answer()); err != nil {
						t.Error(err)
					}
				}))
				defer s.Close()
				var out, errOut bytes.Buffer
				g := globals{IO: term.IO{
					Ctx: t.Context(), Stdin: strings.NewReader(`{}`), Stdout: &out, Stderr: &errOut,
					TTY: tty, Columns: 200, Now: func() time.Time { return time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC) },
				}}
				code := run(g, append(strings.Fields(c.args), "--url", s.URL, "--key", "gth_x"))
				if code != term.ExitDone || !reached || out.Len() == 0 {
					t.Errorf("exit %d after %q, stdout %q, stderr %q", code, asked, out.String(), errOut.String())
				}
				for which, said := range map[string]string{"stdout": out.String(), "stderr": errOut.String()} {
					if i := strings.IndexFunc(said, obeyed); i >= 0 {
						t.Errorf("%s has %+q unescaped: %+q", which, []rune(said[i:])[0], said[max(0, i-60):i+10])
					}
				}
				if n := strings.Count(out.String(), "\n"); !tty && c.rows > 0 && n != c.rows {
					t.Errorf("%d lines instead of %d: %q", n, c.rows, out.String())
				}
			})
		}
	}
}
