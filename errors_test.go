package gatehouse_test

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/gatehouse-dev/gatehouse"
)

// TestCodes states the contract's codes a second time: the status, and whether the
// same request may succeed later.
func TestCodes(t *testing.T) {
	t.Parallel()
	want := map[int]string{
		400: "malformed",
		401: "unauthenticated bad_signature bad_token",
		403: "role_required edit_token_required step_up_required confirmation_required self_approval sender_not_allowed " +
			"worker_not_allowed sign_in_required",
		404: "not_found",
		405: "method_not_allowed",
		409: "ambiguous_id already_decided not_awaiting_approval digest_mismatch target_changed already_voted " +
			"ceiling_exceeded " +
			"authority_revoked duplicate_key already_exists too_late not_reversible cannot_rebase cannot_edit not_unknown " +
			"policy_gated lease_lost in_progress!",
		410: "expired link_expired",
		413: "body_too_large",
		422: "invalid unsupported idempotency_key_reused",
		429: "rate_limited!",
		500: "internal!",
		503: "busy!",
	}
	n := 0
	for status, codes := range want {
		for _, c := range strings.Fields(codes) {
			n++
			name, retryable := strings.CutSuffix(c, "!")
			code := gatehouse.Code(name)
			if got := gatehouse.StatusOf(code); got != status {
				t.Errorf("%s has status %d; want %d", code, got, status)
			}
			if code.Retryable() != retryable {
				t.Errorf("%s: Retryable is %v", code, code.Retryable())
			}
		}
	}
	seen := map[gatehouse.Code]bool{}
	for _, c := range gatehouse.Codes() {
		seen[c] = true
	}
	if len(seen) != n || len(gatehouse.Codes()) != n {
		t.Errorf("Codes lists %d; the contract has %d", len(seen), n)
	}
	if gatehouse.StatusOf("nonsense") != 500 {
		t.Error("the status of an unknown code is not 500")
	}
}

func TestCodeOf(t *testing.T) {
	t.Parallel()
	e := gatehouse.E(gatehouse.CodeTooLate, "held until %d", 7).With("until", 7).Because(io.ErrUnexpectedEOF)
	for _, c := range []struct {
		err  error
		want gatehouse.Code
	}{
		{nil, ""},
		{e, gatehouse.CodeTooLate},
		{fmt.Errorf("cancel: %w", e), gatehouse.CodeTooLate},
		{errors.Join(io.EOF, fmt.Errorf("a: %w", fmt.Errorf("b: %w", e))), gatehouse.CodeTooLate},
		{io.EOF, gatehouse.CodeInternal},
		{gatehouse.E(gatehouse.CodeBusy, "x").Because(e), gatehouse.CodeBusy},
	} {
		if got := gatehouse.CodeOf(c.err); got != c.want {
			t.Errorf("CodeOf(%v) = %q; want %q", c.err, got, c.want)
		}
	}
	if !errors.Is(e, io.ErrUnexpectedEOF) || e.Context["until"] != 7 {
		t.Errorf("lost the cause or the context: %+v", e)
	}
	if got := e.Error(); got != "too_late: held until 7" {
		t.Errorf("Error() = %q: the cause must not show", got)
	}
}

func TestViolations(t *testing.T) {
	t.Parallel()
	var v gatehouse.Violations
	if err := v.Err(); err != nil {
		t.Fatalf("Err without violations: %v, want nil", err)
	}
	v.Add("/a", "has %d", 1)
	v.Add("/b", "is wrong")
	err := v.Err()
	if gatehouse.CodeOf(err) != gatehouse.CodeInvalid || !strings.Contains(err.Error(), "/a has 1; /b is wrong") {
		t.Errorf("%v", err)
	}
	var e *gatehouse.Error
	if err := (gatehouse.Violations{{Detail: "must be an object"}}).Err(); !errors.As(err, &e) ||
		e.Detail != "must be an object" {
		t.Errorf("without a pointer: %#v", err)
	}
}

func TestQuote(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"plain":                  `"plain"`,
		"a\x00\n\x1b[31m":        `"a\x00\n\x1b[31m"`,
		"\u202eevil":             `"\u202eevil"`,
		"\xff":                   `"\ufffd"`,
		strings.Repeat("é", 64):  `"` + strings.Repeat(`\u00e9`, 64) + `"`,
		strings.Repeat("é", 100): `"` + strings.Repeat(`\u00e9`, 64) + `\u2026"`,
	} {
		if got := gatehouse.Quote(in); got != want {
			t.Errorf("Quote(%q) = %s; want %s", in, got, want)
		}
	}
}
