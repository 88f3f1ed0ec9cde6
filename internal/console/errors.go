package console

import (
	"errors"
	"net/http"
	"strings"

	"github.com/gatehouse-dev/gatehouse"
)

// fail answers with the error's page: what happened and what to do next. Internal details go to the
// log only.
func (v *view) fail(err error) {
	e := asError(err)
	if e.Code == gatehouse.CodeInternal {
		v.c.log.ErrorContext(v.r.Context(), "page failed", "request_id", v.requestID, "method", v.r.Method, "path",
			v.r.URL.Path, "error", err)
	}
	status := gatehouse.StatusOf(e.Code)
	switch {
	case v.r.Header.Get("Accept") == "application/json":
		_ = v.jsonWith(status, map[string]string{"code": string(e.Code), "detail": e.Detail})
		return
	case v.wantsDetail():
		_ = v.write(status, errorPane(v, e))
		return
	}
	if rendered := v.render(status, errorTitle(e.Code), "", errorPage(v, e)); rendered != nil {
		v.c.log.ErrorContext(v.r.Context(), "error page failed", "request_id", v.requestID, "error", rendered)
		http.Error(v.w, string(e.Code), status)
	}
}

// asError returns the part of an error that may be shown.
func asError(err error) *gatehouse.Error {
	var e *gatehouse.Error
	if errors.As(err, &e) {
		return e
	}
	return gatehouse.E(gatehouse.CodeInternal, "something went wrong on the server").Because(err)
}

// shown returns the part of a refusal that its page shows, nil for an error that has a
// page of its own.
func shown(err error) *gatehouse.Error {
	e := asError(err)
	switch e.Code {
	case gatehouse.CodeInternal, gatehouse.CodeUnauthenticated, gatehouse.CodeNotFound:
		return nil
	}
	return e
}

// sentence turns an error's detail into a sentence by its first letter and full stop. A detail that
// starts with a name or a value keeps its first letter.
func sentence(detail string) string {
	word, _, _ := strings.Cut(detail, " ")
	for i := range len(word) {
		if c := word[i]; (c < 'a' || c > 'z') && c != ',' && c != ':' {
			return detail
		}
	}
	if detail == "" {
		return ""
	}
	s := strings.ToUpper(detail[:1]) + detail[1:]
	if !strings.HasSuffix(s, ".") {
		s += "."
	}
	return s
}

// errorTitle names an error in a few words.
func errorTitle(code gatehouse.Code) string {
	switch code {
	case gatehouse.CodeNotFound:
		return "Not found"
	case gatehouse.CodeRoleRequired, gatehouse.CodeSelfApproval, gatehouse.CodeEditTokenRequired,
		gatehouse.CodeStepUpRequired,
		gatehouse.CodeSenderNotAllowed:
		return "Not allowed"
	case gatehouse.CodeUnauthenticated:
		return "Not signed in"
	case gatehouse.CodeBadToken:
		return "This link is not valid"
	case gatehouse.CodeLinkExpired:
		return "This link has expired"
	case gatehouse.CodeSignInRequired:
		return "Nothing was decided"
	case gatehouse.CodeExpired:
		return "Too late: it has expired"
	case gatehouse.CodeAlreadyDecided, gatehouse.CodeNotAwaitingApproval:
		return "Already decided"
	case gatehouse.CodeAlreadyVoted:
		return "You have voted already"
	case gatehouse.CodeDigestMismatch:
		return "This is not what you saw"
	case gatehouse.CodeTargetChanged:
		return "The target has changed"
	case gatehouse.CodeConfirmation:
		return "Please confirm"
	case gatehouse.CodeCeilingExceeded:
		return "A ceiling would be exceeded"
	case gatehouse.CodeAuthorityRevoked:
		return "No longer allowed"
	case gatehouse.CodePolicyGated:
		return "The policy is changed through the gate"
	case gatehouse.CodeTooLate:
		return "Too late"
	case gatehouse.CodeNotReversible:
		return "Cannot be reversed"
	case gatehouse.CodeCannotRebase:
		return "Cannot be rebased"
	case gatehouse.CodeCannotEdit:
		return "Cannot be edited"
	case gatehouse.CodeBusy, gatehouse.CodeInProgress, gatehouse.CodeRateLimited:
		return "Please try again"
	case gatehouse.CodeInternal:
		return "Something went wrong"
	case gatehouse.CodeMalformed, gatehouse.CodeInvalid, gatehouse.CodeBodyTooLarge:
		return "That cannot be accepted"
	}
	return "Not possible"
}

// errorAdvice says what to do about an error.
func errorAdvice(code gatehouse.Code) string {
	switch code {
	case gatehouse.CodeNotFound:
		return "The page may belong to another tenant, or the address is incomplete. Search for the id in the inbox."
	case gatehouse.CodeBadToken, gatehouse.CodeLinkExpired:
		return "Open Gatehouse's inbox to see what is waiting for you."
	case gatehouse.CodeSignInRequired:
		return "Sign in, and decide in Gatehouse."
	case gatehouse.CodeRoleRequired:
		return "Ask an administrator for the role, or sign in as somebody who has it."
	case gatehouse.CodeSelfApproval:
		return "Ask another approver. People can't decide what was proposed by them or on their behalf."
	case gatehouse.CodeSenderNotAllowed:
		return "The step's from: in the workflow lists who may send this event. Ask one of them."
	case gatehouse.CodeEditTokenRequired, gatehouse.CodeStepUpRequired:
		return "Prove your identity with your passkey, your provider, or your edit token, and decide again."
	case gatehouse.CodeUnauthenticated:
		return "Sign in again. A set-up link works once, for thirty minutes; an administrator can create a new one."
	case gatehouse.CodeExpired:
		return "Nothing was changed. If the change is still wanted, its proposer can propose it again."
	case gatehouse.CodeAlreadyDecided, gatehouse.CodeNotAwaitingApproval:
		return "Your answer was not counted; the decision below stands."
	case gatehouse.CodeAlreadyVoted:
		return "Each person has one vote. You can still change an approval to a rejection until the last vote."
	case gatehouse.CodeDigestMismatch:
		return "Nothing was decided. Look at the current state, then decide."
	case gatehouse.CodeTargetChanged:
		return "Nothing was decided. Compare the expected state with the current one. Then rebase the action on " +
			"the current state or approve it anyway, if offered; otherwise reject it."
	case gatehouse.CodeCannotRebase:
		return "Nothing was proposed; the action is unchanged. Decide it as it is, or ask for a new proposal."
	case gatehouse.CodeCannotEdit:
		return "Nothing was stored; the action is unchanged. Edit it differently, or reject it with a reason."
	case gatehouse.CodeConfirmation:
		return "Nothing was decided. Type the value exactly as it is shown."
	case gatehouse.CodeCeilingExceeded:
		return "Your vote was not stored. Wait until there is room under the ceiling, or ask for a higher " +
			"ceiling in the policy."
	case gatehouse.CodeAuthorityRevoked:
		return "The active policy now forbids the action, or a voter has lost the right to decide. Nothing was " +
			"approved."
	case gatehouse.CodeTooLate:
		return "The action is already being sent. Once it is applied, it may be possible to reverse it."
	case gatehouse.CodeBusy, gatehouse.CodeInProgress, gatehouse.CodeRateLimited:
		return "Nothing was changed. Wait a moment and try again."
	case gatehouse.CodeInternal:
		return "Try again. If the error persists, tell the operator the request's id."
	}
	return "Nothing was changed."
}
