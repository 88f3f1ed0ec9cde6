package api

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"slices"
	"strconv"

	"github.com/go-json-experiment/json"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/card"
)

// problem is the body of an error: RFC 9457, with the contract's members.
type problem struct {
	Type      string         `json:"type"`
	Title     string         `json:"title"`
	Status    int            `json:"status"`
	Detail    string         `json:"detail"`
	Instance  string         `json:"instance"`
	Code      gatehouse.Code `json:"code"`
	Retryable bool           `json:"retryable"`
	RequestID string         `json:"request_id"`
	// Errors lists each violation of an input.
	Errors []gatehouse.Violation `json:"errors,omitempty"`
	// Context holds the members that the contract defines for the code.
	Context map[string]any `json:",embed"`
}

// ownMembers cannot be overwritten by an error's context.
var ownMembers = map[string]bool{
	"type": true, "title": true, "status": true, "detail": true, "instance": true,
	"code": true, "retryable": true, "request_id": true, "errors": true,
}

// titles describes each code, for people who read the raw response.
var titles = map[gatehouse.Code]string{
	gatehouse.CodeMalformed:           "The body is not the JSON that this call accepts",
	gatehouse.CodeInvalid:             "The request is well-formed, but a value is not valid",
	gatehouse.CodeUnsupported:         "Not supported",
	gatehouse.CodeBodyTooLarge:        "The body is too large",
	gatehouse.CodeUnauthenticated:     "No valid API key",
	gatehouse.CodeRoleRequired:        "A role is missing",
	gatehouse.CodeEditTokenRequired:   "The edit token is missing or wrong",
	gatehouse.CodeStepUpRequired:      "A recent proof of identity is missing",
	gatehouse.CodeConfirmation:        "The value to retype is missing or wrong",
	gatehouse.CodeSelfApproval:        "Proposer, sponsor, on_behalf_of and contributors cannot decide",
	gatehouse.CodeSenderNotAllowed:    "This principal may not send the event",
	gatehouse.CodeWorkerNotAllowed:    "Other workers carry this out",
	gatehouse.CodeNotFound:            "Not found",
	gatehouse.CodeAmbiguousID:         "Several ids begin with this text",
	gatehouse.CodeMethodNotAllowed:    "The path does not accept this method",
	gatehouse.CodeAlreadyDecided:      "Decided already",
	gatehouse.CodeNotAwaitingApproval: "Not awaiting approval",
	gatehouse.CodeDigestMismatch:      "The digest differs from the stored one",
	gatehouse.CodeTargetChanged:       "The target changed since the proposal",
	gatehouse.CodeAlreadyVoted:        "This person voted already",
	gatehouse.CodeCeilingExceeded:     "A ceiling would be exceeded",
	gatehouse.CodeAuthorityRevoked:    "The authority was revoked",
	gatehouse.CodeDuplicateKey:        "The idempotency_key belongs to other content",
	gatehouse.CodeAlreadyExists:       "Exists already",
	gatehouse.CodeTooLate:             "Too late",
	gatehouse.CodeNotReversible:       "Not reversible",
	gatehouse.CodeCannotRebase:        "Cannot be rebased",
	gatehouse.CodeCannotEdit:          "Cannot be edited",
	gatehouse.CodeNotUnknown:          "The outcome is known already",
	gatehouse.CodePolicyGated:         "The policy can be changed only by a proposal",
	gatehouse.CodeLeaseLost:           "The caller no longer holds the lease",
	gatehouse.CodeBadSignature:        "The signature is missing or wrong",
	gatehouse.CodeBadToken:            "The link is not valid",
	gatehouse.CodeLinkExpired:         "The link has expired",
	gatehouse.CodeSignInRequired:      "Deciding needs a sign-in",
	gatehouse.CodeInProgress:          "The first request under this key still runs",
	gatehouse.CodeKeyReused:           "The Idempotency-Key was used for another request",
	gatehouse.CodeExpired:             "Expired",
	gatehouse.CodeRateLimited:         "Too many requests",
	gatehouse.CodeInternal:            "The server failed",
	gatehouse.CodeBusy:                "Busy",
}

// publicError turns any error into one that clients may see.
func publicError(err error) *gatehouse.Error {
	var e *gatehouse.Error
	switch {
	case errors.As(err, &e) && e.Code != gatehouse.CodeInternal && titles[e.Code] != "":
		return e
	case errors.Is(err, gatehouse.ErrBusy), errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		return gatehouse.E(gatehouse.CodeBusy, "the server could not finish in time; try again")
	case errors.Is(err, gatehouse.ErrNotFound):
		return gatehouse.E(gatehouse.CodeNotFound, "not found")
	}
	return gatehouse.E(gatehouse.CodeInternal, "please report the request id")
}

// problemType returns the URI of a code: its section of the page at /docs.
func problemType(code gatehouse.Code) string { return "/docs#" + string(code) }

// problem writes an error and returns its status.
func (s *Server) problem(w http.ResponseWriter, r *http.Request, requestID string, err error) int {
	e := publicError(err)
	status := gatehouse.StatusOf(e.Code)
	s.logProblem(r, requestID, status, err)
	p := problem{
		Type: problemType(e.Code), Title: titles[e.Code], Status: status,
		Detail: card.TerminalLines(e.Detail), Instance: card.Terminal(r.URL.Path), Code: e.Code,
		Retryable: e.Code.Retryable(),
		RequestID: requestID, Errors: readableViolations(e.Violations),
	}
	for name, value := range e.Context {
		if ownMembers[name] {
			continue
		}
		if p.Context == nil {
			p.Context = make(map[string]any, len(e.Context))
		}
		p.Context[name] = value
	}
	h := w.Header()
	if status == http.StatusUnauthorized {
		h.Set("WWW-Authenticate", `Bearer realm="gatehouse"`)
	}
	after := e.RetryAfter
	if status == http.StatusTooManyRequests || status == http.StatusServiceUnavailable {
		after = max(after, 1)
	}
	if after > 0 {
		h.Set("Retry-After", strconv.Itoa(after))
	}
	b, err := json.Marshal(&p, wire)
	if err != nil {
		// A context member cannot be encoded. Without the context, the client still gets the code.
		s.log.ErrorContext(r.Context(), "encode problem", "request_id", requestID, "code", e.Code, "err", err)
		p.Context = nil
		if b, err = json.Marshal(&p, wire); err != nil {
			panic(err)
		}
	}
	writeBytes(w, status, headerProblem, b)
	return status
}

// readableViolations returns the violations with every character of their
// details visible. Pointers are for programs and stay unchanged.
func readableViolations(list []gatehouse.Violation) []gatehouse.Violation {
	out := slices.Clone(list)
	for i, v := range out {
		out[i].Detail = card.TerminalLines(v.Detail)
	}
	return out
}

func (s *Server) logProblem(r *http.Request, requestID string, status int, err error) {
	level := slog.LevelDebug
	switch {
	case status == http.StatusServiceUnavailable:
		level = slog.LevelWarn
	case status >= 500:
		level = slog.LevelError
	}
	if !s.log.Enabled(r.Context(), level) {
		return
	}
	attrs := []any{"request_id", requestID, "method", r.Method, "path", r.URL.Path, "status", status, "err", err}
	if cause := errors.Unwrap(err); cause != nil {
		attrs = append(attrs, "cause", cause)
	}
	s.log.Log(r.Context(), level, "request failed", attrs...)
}

// requestID returns the id under which a request is logged, and sets it on the
// response: the id that the response already has, else the valid id of the client's
// X-Request-Id, else a new id.
func requestID(w http.ResponseWriter, r *http.Request) string {
	h := w.Header()
	if set := h["X-Request-Id"]; len(set) == 1 {
		return set[0]
	}
	if given := r.Header["X-Request-Id"]; len(given) == 1 && saneID(given[0]) {
		h["X-Request-Id"] = given
		return given[0]
	}
	b := make([]byte, 0, 20)
	b = append(b, "req_"...)
	b = strconv.AppendUint(b, rand.Uint64(), 36)
	id := string(b)
	h["X-Request-Id"] = []string{id}
	return id
}

func saneID(s string) bool {
	if s == "" || len(s) > 128 {
		return false
	}
	for i := range len(s) {
		switch c := s[i]; {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', c == '-', c == '_', c == '.', c == ':':
		default:
			return false
		}
	}
	return true
}
