package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"testing"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/term"
	"github.com/gatehouse-dev/gatehouse/internal/termtest"
)

func TestExitCodeOfEveryErrorCode(t *testing.T) {
	t.Parallel()
	want := map[gatehouse.Code]int{
		gatehouse.CodeUnauthenticated: 4, gatehouse.CodeRoleRequired: 4, gatehouse.CodeEditTokenRequired: 4,
		gatehouse.CodeStepUpRequired: 4, gatehouse.CodeConfirmation: 4, gatehouse.CodeSelfApproval: 4,
		gatehouse.CodeSenderNotAllowed: 4, gatehouse.CodeWorkerNotAllowed: 4,
		gatehouse.CodeBadSignature: 4, gatehouse.CodeBadToken: 4, gatehouse.CodeSignInRequired: 4,
		gatehouse.CodeExpired:        11,
		gatehouse.CodeAlreadyDecided: 12, gatehouse.CodeNotAwaitingApproval: 12, gatehouse.CodeTooLate: 12,
	}
	for _, code := range gatehouse.Codes() {
		expected, ok := want[code]
		if !ok {
			expected = 1
		}
		if got := exitCode(fmt.Errorf("wrapped: %w", gatehouse.E(code, "x"))); got != expected {
			t.Errorf("%s: exit code %d, want %d", code, got, expected)
		}
	}
}

func TestExitCodeOfOtherErrors(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		err  error
		want int
	}{
		{nil, 0}, {fs.ErrNotExist, 1}, {term.Usagef("x"), 2}, {term.Exit(8), 8},
		{fmt.Errorf("get: %w", context.Canceled), 130}, {context.DeadlineExceeded, 1},
	} {
		if got := exitCode(c.err); got != c.want {
			t.Errorf("%v: exit code %d, want %d", c.err, got, c.want)
		}
	}
}

func TestExitOfEveryStatus(t *testing.T) {
	t.Parallel()
	want := map[gatehouse.Status][2]int{ // until decided, until finished
		gatehouse.StatusPending: {8, 8}, gatehouse.StatusApproved: {0, 8}, gatehouse.StatusPushing: {0, 8},
		gatehouse.StatusApplied: {0, 0}, gatehouse.StatusReversed: {0, 0}, gatehouse.StatusFailed: {1, 1},
		gatehouse.StatusUnknown: {13, 13}, gatehouse.StatusRejected: {10, 10}, gatehouse.StatusDenied: {10, 10},
		gatehouse.StatusExpired: {11, 11}, gatehouse.StatusCanceled: {12, 12}, gatehouse.StatusSuperseded: {12, 12},
	}
	for _, s := range gatehouse.Statuses() {
		expected, ok := want[s]
		if !ok {
			t.Errorf("%s is not in the table", s)
			continue
		}
		for i, until := range []gatehouse.Until{gatehouse.UntilDecided, gatehouse.UntilFinished} {
			if got := exitCode(exitOfStatus(s, until)); got != expected[i] {
				t.Errorf("%s until %s: exit code %d, want %d", s, until, got, expected[i])
			}
		}
	}
}

// testGlobals returns the globals of a command, and what it writes to stdout and to stderr.
func testGlobals(t testing.TB) (*globals, *bytes.Buffer, *bytes.Buffer) {
	t.Helper()
	io, out, errOut := termtest.New(t)
	return &globals{URL: "http://127.0.0.1:1", IO: *io}, out, errOut
}

// runCommand runs a command, checks its exit code, and returns what it wrote to stdout and to stderr.
func runCommand(t testing.TB, want int, args ...string) (stdout, stderr string) {
	t.Helper()
	g, out, errOut := testGlobals(t)
	if code := run(*g, args); code != want {
		t.Errorf("%v: exit code %d, want %d: %s%s", args, code, want, out, errOut)
	}
	return out.String(), errOut.String()
}

func TestReportIsSafeAndComplete(t *testing.T) {
	t.Parallel()
	g, out, errOut := testGlobals(t)
	e := gatehouse.E(gatehouse.CodeAlreadyDecided, "decided by \x1b[8mana").With("decided_by", "ana\u202e").
		With("current_status", "approved").With("superseded_by", nil)
	e.Violations = gatehouse.Violations{{Pointer: "/target/entity_ref", Detail: "is required"}}
	e.RetryAfter = 3
	g.report(e)
	want := "error: decided by <U+001B>[8mana (already_decided)\n" +
		"  /target/entity_ref is required\n" +
		"  current_status: approved\n" +
		"  decided_by: ana<U+202E>\n" +
		"  retry after: 3s\n"
	if errOut.String() != want || out.Len() > 0 {
		t.Errorf("got %q on stderr, %q on stdout; want %q", errOut, out, want)
	}
}

func TestReportJSONIsAProblem(t *testing.T) {
	t.Parallel()
	g, out, errOut := testGlobals(t)
	g.JSON = true
	g.report(gatehouse.Violations{{Pointer: "/connector", Detail: "is required"}}.Err())
	var got struct {
		Code      string
		Status    int
		Detail    string
		Retryable *bool
		Errors    []gatehouse.Violation
	}
	must(t, json.Unmarshal(errOut.Bytes(), &got))
	if got.Code != "invalid" || got.Status != 422 || got.Retryable == nil || *got.Retryable || len(got.Errors) != 1 ||
		out.Len() > 0 {
		t.Errorf("got %s", errOut)
	}
}

func TestReportHints(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		err  error
		want string
	}{
		{gatehouse.E(gatehouse.CodeUnauthenticated, "x"), "GATEHOUSE_KEY"},
		{gatehouse.E(gatehouse.CodeEditTokenRequired, "x"), "GATEHOUSE_EDIT_TOKEN"},
		{gatehouse.E(gatehouse.CodeConfirmation, "x"), "--confirm"},
		{gatehouse.E(gatehouse.CodeDigestMismatch, "x"), "gatehouse show"},
	} {
		g, _, errOut := testGlobals(t)
		g.report(c.err)
		if !strings.Contains(errOut.String(), "hint: ") || !strings.Contains(errOut.String(), c.want) {
			t.Errorf("%v: %q has no hint of %s", c.err, errOut, c.want)
		}
	}
	g, _, errOut := testGlobals(t)
	g.report(term.Exit(8))
	g.report(errors.New("plain"))
	if errOut.String() != "error: plain\n" {
		t.Errorf("got %q", errOut)
	}
}
