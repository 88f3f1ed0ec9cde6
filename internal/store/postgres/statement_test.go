package postgres

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"github.com/gatehouse-dev/gatehouse"
)

var rowLocks = regexp.MustCompile(`\bFOR (SHARE|NO KEY UPDATE)\b`)

// statements are the statements over arrays that are checked.
var statements = map[string]*arrayStatement{
	"activeVersions":      activeVersions.arrayStatement,
	"appendLeaves":        appendLeaves.arrayStatement,
	"checkCeilings":       checkCeilings.arrayStatement,
	"findActions":         findActions.arrayStatement,
	"findAnswerers":       findAnswerers.arrayStatement,
	"findAnswers":         findAnswers.arrayStatement,
	"findArchivedByKey":   findArchivedByKey.arrayStatement,
	"findTransitionSteps": findTransitionSteps.arrayStatement,
	"findCredentials":     findCredentials.arrayStatement,
	"findDeadLetters":     findDeadLetters.arrayStatement,
	"findDecisions":       findDecisions.arrayStatement,
	"findNamed":           findNamed.arrayStatement,
	"findPushes":          findPushes.arrayStatement,
	"findRights":          findRights.arrayStatement,
	"findRunHeads":        findRunHeads.arrayStatement,
	"findSuccesses":       findSuccesses.arrayStatement,
	"findVotes":           findVotes.arrayStatement,
	"insertActions":       insertActions.arrayStatement,
	"insertAnswers":       insertAnswers.arrayStatement,
	"insertAttempts":      insertAttempts.arrayStatement,
	"insertMirrors":       insertMirrors.arrayStatement,
	"insertPushes":        insertPushes.arrayStatement,
	"insertReceipts":      insertReceipts.arrayStatement,
	"insertReflexions":    insertReflexions.arrayStatement,
	"insertUsages":        insertUsages.arrayStatement,
	"lockActions":         lockActions.arrayStatement,
	"lockCeilings":        lockCeilings.arrayStatement,
	"lockCredentials":     lockCredentials.arrayStatement,
	"lockPeople":          lockPeople.arrayStatement,
	"lockPushes":          lockPushes.arrayStatement,
	"lockRuns":            lockRuns.arrayStatement,
	"lockVoters":          lockVoters.arrayStatement,
	"moveActions":         moveActions.arrayStatement,
	"moveApprovals":       moveApprovals.arrayStatement,
	"moveReversals":       moveReversals.arrayStatement,
	"moveRuns":            moveRuns.arrayStatement,
	"openActions":         openActions.arrayStatement,
	"passSteps":           passSteps.arrayStatement,
	"putVotes":            putVotes.arrayStatement,
	"releaseClaims":       releaseClaims.arrayStatement,
	"reserveClaims":       reserveClaims.arrayStatement,
	"setRunOutputs":       setRunOutputs.arrayStatement,
	"settleDecision":      settleDecision.arrayStatement,
	"updatePushes":        updatePushes.arrayStatement,
	"updateSteps":         updateSteps.arrayStatement,
	"wakeActionSteps":     wakeActionSteps.arrayStatement,
	"wakeParents":         wakeParents.arrayStatement,
}

// unowned are the writes that two members of a group may send for the same object.
var unowned = []string{
	"appendLeaves", "checkCeilings", "insertAnswers", "insertMirrors", "insertReflexions", "insertUsages", "lockCeilings",
	"releaseClaims", "wakeActionSteps", "wakeParents",
}

// declared finds the statements in the source.
var declared = regexp.MustCompile(`(?m)^(?:var |\t)(\w+) += (?:reads|locks|writes|single)\[`)

// TestStatementsAreChecked: TestStatements omits no statement.
func TestStatementsAreChecked(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		source, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range declared.FindAllStringSubmatch(string(source), -1) {
			if found++; statements[m[1]] == nil {
				t.Errorf("%s: %s is not in statements", file, m[1])
			}
		}
	}
	if found != len(statements) {
		t.Errorf("%d statements in the source, %d are checked", found, len(statements))
	}
}

// The first column is unnested, the others are looked up by the number of the row, which a statement with one
// column does not need.
var (
	firstColumn   = regexp.MustCompile(`FROM unnest\(\$1::(\w+)\[\]\) (?:WITH ORDINALITY AS r\("?(\w+)"?, n\)|AS (\w+))`)
	scalarColumns = regexp.MustCompile(`\$(\d+)::(\w+) AS "?(\w+)"?`)
	otherColumns  = regexp.MustCompile(`\(\$(\d+)::(\w+)\[\]\)\[n\] AS "?(\w+)"?`)
)

// TestStatements compares the columns of each text with the fields of its row type, by name and type,
// and prepares it.
func TestStatements(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	c, err := pgx.Connect(ctx, database(t))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close(ctx)
	for name, s := range statements {
		var want, wantTypes []string
		for _, c := range s.columns {
			want, wantTypes = append(want, strings.ToLower(c.name)), append(wantTypes, arrayType(c.typ))
		}
		if s.single != "" {
			checkSingle(t, c, name, s, want, wantTypes)
		}
		if s.text == "" {
			continue
		}
		for _, text := range []string{s.text, s.forGroup} {
			first := firstColumn.FindStringSubmatch(text)
			if first == nil {
				t.Fatalf("%s has no rows", name)
			}
			types, names := []string{first[1]}, []string{first[2] + first[3]}
			for i, m := range otherColumns.FindAllStringSubmatch(text, -1) {
				if m[1] != strconv.Itoa(i+2) {
					t.Errorf("%s: %s is argument %s", name, m[3], m[1])
				}
				types, names = append(types, m[2]), append(names, m[3])
			}
			for i := range names {
				names[i] = strings.ReplaceAll(names[i], "_", "")
			}
			if diff := cmp.Diff(want, names); diff != "" {
				t.Errorf("%s: the columns (-row, +text)\n%s", name, diff)
			}
			if diff := cmp.Diff(wantTypes, types); diff != "" {
				t.Errorf("%s: the types (-row, +text)\n%s", name, diff)
			}
			d, err := c.Prepare(ctx, "", text)
			if err != nil {
				t.Errorf("%s: %v", name, err)
			} else if len(d.ParamOIDs) != len(want)+1 {
				t.Errorf("%s: %d arguments for %d columns", name, len(d.ParamOIDs), len(want))
			}
			for _, line := range strings.Split(text, "\n") {
				if len(line) > 120 {
					t.Errorf("%s: %s", name, line)
				}
			}
		}
		if s.rank == 0 && len(rowLocks.FindAllString(s.forGroup, -1)) != strings.Count(s.forGroup, " SKIP LOCKED") {
			t.Errorf("%s: a group waits for a lock", name)
		}
	}
	for name, s := range statements {
		if s.rank > 0 && (s.subject < 0) != slices.Contains(unowned, name) {
			t.Errorf("%s: unexpected subject column %d", name, s.subject)
		}
	}
	if updateSteps.key < 0 || passSteps.key < 0 {
		t.Error("the keys of steps are in no column")
	}
	if most := fmt.Sprint("LIMIT ", gatehouse.MaxFirstAnswerers, " "); !strings.Contains(findAnswerers.text, most) {
		t.Errorf("findAnswerers does not contain %s", most)
	}
}

// checkSingle is TestStatements for the text of one row.
func checkSingle(t *testing.T, c *pgx.Conn, name string, s *arrayStatement, want, wantTypes []string) {
	t.Helper()
	var names, types []string
	for i, m := range scalarColumns.FindAllStringSubmatch(s.single, -1) {
		if m[1] != strconv.Itoa(i+1) {
			t.Errorf("%s: %s is argument %s", name, m[3], m[1])
		}
		types, names = append(types, m[2]), append(names, strings.ReplaceAll(m[3], "_", ""))
	}
	if diff := cmp.Diff(want, names); diff != "" {
		t.Errorf("%s: the columns (-row, +text of one row)\n%s", name, diff)
	}
	if diff := cmp.Diff(wantTypes, types); diff != "" {
		t.Errorf("%s: the types (-row, +text of one row)\n%s", name, diff)
	}
	if _, err := c.Prepare(t.Context(), "", s.single); err != nil {
		t.Errorf("%s: %v", name, err)
	}
	_, one, _ := strings.Cut(s.single, "\n),\n")
	_, many, several := strings.Cut(s.text, "\n),\n")
	if several && one != many {
		t.Errorf("%s: its texts differ by more than their rows", name)
	}
}

func arrayType(t reflect.Type) string {
	switch {
	case t == timeType:
		return "bigint"
	case t.Kind() == reflect.Array, t.Kind() == reflect.Slice:
		return "bytea"
	case t.Kind() == reflect.Bool:
		return "boolean"
	case t.Kind() == reflect.String:
		return "text"
	}
	return "bigint"
}

// TestArguments: a row becomes one element of each array, and an absent part of it NULLs.
func TestArguments(t *testing.T) {
	t.Parallel()
	type part struct {
		Name string
		Hash gatehouse.Hash
	}
	type example struct {
		ID     string
		Status gatehouse.Status
		Count  int
		Free   bool
		Body   []byte
		At     time.Time
		Until  *time.Time
		Part   *part
	}
	at := time.UnixMicro(7).UTC()
	s := newStatement[example]("")
	got := s.arguments([]any{
		example{"a", "pending", 1, true, []byte{1}, at, &at, &part{"x", gatehouse.Hash{9}}},
		example{ID: "b", At: at},
	})
	seven, x := int64(7), "x"
	hash := slices.Concat([]byte{9}, make([]byte, 31))
	want := []any{
		[]string{"a", "b"}, []string{"pending", ""}, []int64{1, 0}, []bool{true, false}, [][]byte{{1}, nil},
		[]int64{7, 7}, []*int64{&seven, nil}, []*string{&x, nil}, []*[]byte{&hash, nil}, int64(2),
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
