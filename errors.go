package gatehouse

import (
	"errors"
	"fmt"
	"strings"
)

// Code is the machine-readable reason of an error. [StatusOf] maps codes to HTTP
// statuses, for server and client alike.
type Code string

// The error codes of the contract.
const (
	CodeMalformed           Code = "malformed"
	CodeInvalid             Code = "invalid"
	CodeUnsupported         Code = "unsupported"
	CodeBodyTooLarge        Code = "body_too_large"
	CodeUnauthenticated     Code = "unauthenticated"
	CodeRoleRequired        Code = "role_required"
	CodeEditTokenRequired   Code = "edit_token_required"
	CodeStepUpRequired      Code = "step_up_required"
	CodeConfirmation        Code = "confirmation_required"
	CodeSelfApproval        Code = "self_approval"
	CodeSenderNotAllowed    Code = "sender_not_allowed"
	CodeWorkerNotAllowed    Code = "worker_not_allowed"
	CodeNotFound            Code = "not_found"
	CodeAmbiguousID         Code = "ambiguous_id"
	CodeMethodNotAllowed    Code = "method_not_allowed"
	CodeAlreadyDecided      Code = "already_decided"
	CodeNotAwaitingApproval Code = "not_awaiting_approval"
	CodeDigestMismatch      Code = "digest_mismatch"
	CodeTargetChanged       Code = "target_changed"
	CodeAlreadyVoted        Code = "already_voted"
	CodeCeilingExceeded     Code = "ceiling_exceeded"
	CodeAuthorityRevoked    Code = "authority_revoked"
	CodeDuplicateKey        Code = "duplicate_key"
	CodeAlreadyExists       Code = "already_exists"
	CodeTooLate             Code = "too_late"
	CodeNotReversible       Code = "not_reversible"
	CodeCannotRebase        Code = "cannot_rebase"
	CodeCannotEdit          Code = "cannot_edit"
	CodeNotUnknown          Code = "not_unknown"
	CodePolicyGated         Code = "policy_gated"
	CodeLeaseLost           Code = "lease_lost"
	CodeBadSignature        Code = "bad_signature"
	CodeBadToken            Code = "bad_token"
	CodeLinkExpired         Code = "link_expired"
	CodeSignInRequired      Code = "sign_in_required"
	CodeInProgress          Code = "in_progress"
	CodeKeyReused           Code = "idempotency_key_reused"
	CodeExpired             Code = "expired"
	CodeRateLimited         Code = "rate_limited"
	CodeBusy                Code = "busy"
	CodeInternal            Code = "internal"
)

var statusOf = map[Code]int{
	CodeMalformed:           400,
	CodeUnauthenticated:     401,
	CodeBadSignature:        401,
	CodeBadToken:            401,
	CodeRoleRequired:        403,
	CodeEditTokenRequired:   403,
	CodeStepUpRequired:      403,
	CodeConfirmation:        403,
	CodeSelfApproval:        403,
	CodeSenderNotAllowed:    403,
	CodeWorkerNotAllowed:    403,
	CodeSignInRequired:      403,
	CodeNotFound:            404,
	CodeMethodNotAllowed:    405,
	CodeAmbiguousID:         409,
	CodeAlreadyDecided:      409,
	CodeNotAwaitingApproval: 409,
	CodeDigestMismatch:      409,
	CodeTargetChanged:       409,
	CodeAlreadyVoted:        409,
	CodeCeilingExceeded:     409,
	CodeAuthorityRevoked:    409,
	CodeDuplicateKey:        409,
	CodeAlreadyExists:       409,
	CodeTooLate:             409,
	CodeNotReversible:       409,
	CodeCannotRebase:        409,
	CodeCannotEdit:          409,
	CodeNotUnknown:          409,
	CodePolicyGated:         409,
	CodeLeaseLost:           409,
	CodeInProgress:          409,
	CodeExpired:             410,
	CodeLinkExpired:         410,
	CodeBodyTooLarge:        413,
	CodeInvalid:             422,
	CodeUnsupported:         422,
	CodeKeyReused:           422,
	CodeRateLimited:         429,
	CodeInternal:            500,
	CodeBusy:                503,
}

// StatusOf returns the HTTP status of a code, 500 for an unknown code.
func StatusOf(c Code) int {
	if s, ok := statusOf[c]; ok {
		return s
	}
	return 500
}

// Codes lists every code there is, in no particular order.
func Codes() []Code {
	codes := make([]Code, 0, len(statusOf))
	for c := range statusOf {
		codes = append(codes, c)
	}
	return codes
}

// Retryable reports whether the same request, unchanged, may succeed later.
func (c Code) Retryable() bool {
	switch c {
	case CodeRateLimited, CodeBusy, CodeInProgress, CodeInternal:
		return true
	}
	return false
}

// Error is an error that may be shown to the outside. Detail is for people;
// Context holds the members that the contract names for the code.
type Error struct {
	// Code is for programs; it decides the HTTP status.
	Code Code
	// Detail is one sentence for people, without secrets.
	Detail string
	// Violations names the wrong fields of an invalid request.
	Violations []Violation
	// Context is nil when the code has no further members.
	Context map[string]any
	// RetryAfter is in whole seconds, 0 for none.
	RetryAfter int
	cause      error
}

// Error returns code and detail.
func (e *Error) Error() string {
	s := string(e.Code) + ": " + e.Detail
	for _, v := range e.Violations {
		if text := v.Pointer + " " + v.Detail; text != e.Detail {
			s += "; " + text
		}
	}
	return s
}

// Unwrap returns the internal cause, which is never shown outside.
func (e *Error) Unwrap() error { return e.cause }

// E makes an error with a code and a formatted detail.
func E(code Code, format string, args ...any) *Error {
	return &Error{Code: code, Detail: fmt.Sprintf(format, args...)}
}

// With adds a context member and returns the error.
func (e *Error) With(name string, value any) *Error {
	if e.Context == nil {
		e.Context = make(map[string]any)
	}
	e.Context[name] = value
	return e
}

// Because attaches an internal cause, for logs only, and returns the error.
func (e *Error) Because(cause error) *Error {
	e.cause = cause
	return e
}

// CodeOf returns the code of an error: "" for nil, internal for an error that is not
// an [Error].
func CodeOf(err error) Code {
	if err == nil {
		return ""
	}
	var e *Error
	if errors.As(err, &e) {
		return e.Code
	}
	return CodeInternal
}

// Violation is one thing wrong with an input; Pointer is an RFC 6901 JSON pointer.
type Violation struct {
	Pointer string `json:"pointer"`
	// Detail says what is wrong, as the rest of a sentence that begins with the pointer: "must be 1 to 5".
	Detail string `json:"detail"`
}

// UnknownPerson begins the Detail of a violation: no person has the name that follows, in quotes.
const UnknownPerson = "names a person who does not exist: "

// Violations collects the errors of an input.
type Violations []Violation

// Add appends a violation.
func (v *Violations) Add(pointer, format string, args ...any) {
	*v = append(*v, Violation{pointer, fmt.Sprintf(format, args...)})
}

// Err returns nil when there are none, else an error with code invalid.
func (v Violations) Err() error {
	if len(v) == 0 {
		return nil
	}
	return &Error{Code: CodeInvalid, Detail: strings.TrimPrefix(v[0].Pointer+" "+v[0].Detail, " "), Violations: v}
}

// QuoteWord returns an id or a name unchanged, and quotes any other text.
func QuoteWord(s string) string {
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("_-.", r)
	}
	if s == "" || len(s) > 64 || strings.ContainsFunc(s, func(r rune) bool { return !plain(r) }) {
		return Quote(s)
	}
	return s
}

// Quote quotes hostile text for an error message: it cuts the text after 64 runes,
// and escapes every character that is not printable ASCII.
func Quote(s string) string {
	if r := []rune(s); len(r) > 64 {
		s = string(r[:64]) + "…"
	}
	return fmt.Sprintf("%+q", strings.ToValidUTF8(s, "\uFFFD"))
}
