package console

import (
	"cmp"
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

// refusalOf returns the part of a refusal that its page shows, nil for an error that has a
// page of its own.
func refusalOf(err error) *gatehouse.Error {
	e := asError(err)
	switch e.Code {
	case gatehouse.CodeInternal, gatehouse.CodeUnauthenticated, gatehouse.CodeNotFound:
		return nil
	}
	return e
}

// changed answers the form of a change. After success it redirects to path. It stores a refusal in failed
// and calls show; an error that has a page of its own is returned.
func (v *view) changed(path string, err error, failed **gatehouse.Error, show func(status int) error) error {
	if err == nil {
		return v.redirect(path)
	}
	if *failed = refusalOf(err); *failed == nil {
		return err
	}
	return show(gatehouse.StatusOf((*failed).Code))
}

// sentence turns an error's detail into a sentence, with a capital and a full stop. A detail whose first word is
// not plain lower-case letters, such as a name or a value, is returned unchanged and gets no full stop.
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
	return cmp.Or(map[gatehouse.Code]string{
		gatehouse.CodeNotFound:            "Not found",
		gatehouse.CodeRoleRequired:        "Not allowed",
		gatehouse.CodeSelfApproval:        "Not allowed",
		gatehouse.CodeEditTokenRequired:   "Not allowed",
		gatehouse.CodeStepUpRequired:      "Not allowed",
		gatehouse.CodeSenderNotAllowed:    "Not allowed",
		gatehouse.CodeUnauthenticated:     "Not signed in",
		gatehouse.CodeBadToken:            "This link is not valid",
		gatehouse.CodeLinkExpired:         "This link has expired",
		gatehouse.CodeSignInRequired:      "Nothing was decided",
		gatehouse.CodeExpired:             "Too late: it has expired",
		gatehouse.CodeAlreadyDecided:      "Already decided",
		gatehouse.CodeNotAwaitingApproval: "Already decided",
		gatehouse.CodeAlreadyVoted:        "You have voted already",
		gatehouse.CodeDigestMismatch:      "This is not what you saw",
		gatehouse.CodeTargetChanged:       "The target has changed",
		gatehouse.CodeConfirmation:        "Please confirm",
		gatehouse.CodeCeilingExceeded:     "A ceiling would be exceeded",
		gatehouse.CodeAuthorityRevoked:    "No longer allowed",
		gatehouse.CodePolicyGated:         "The policy can be changed only by a proposal",
		gatehouse.CodeTooLate:             "Too late",
		gatehouse.CodeNotReversible:       "Cannot be reversed",
		gatehouse.CodeCannotRebase:        "Cannot be rebased",
		gatehouse.CodeCannotEdit:          "Cannot be edited",
		gatehouse.CodeBusy:                "Please try again",
		gatehouse.CodeInProgress:          "Please try again",
		gatehouse.CodeRateLimited:         "Please try again",
		gatehouse.CodeInternal:            "Something went wrong",
		gatehouse.CodeMalformed:           "The request is not valid",
		gatehouse.CodeInvalid:             "The request is not valid",
		gatehouse.CodeBodyTooLarge:        "The request is not valid",
	}[code], "Not possible")
}

// wayOut returns the path and name of the page to which an error page links: the documentation or the section
// to which the failed page belongs, else the inbox, or the settings for a person whose only role is worker.
func (v *view) wayOut() (path, name string) {
	if strings.HasPrefix(v.r.URL.Path, docsPath) {
		return docsPath + docsIndex, "documentation"
	}
	for _, item := range v.navItems() {
		if strings.HasPrefix(v.r.URL.Path, item.Path+"/") {
			return item.Path, strings.ToLower(item.Label)
		}
	}
	if v.onlyWorker() {
		return settingsPath, "settings"
	}
	return "/inbox", "inbox"
}

// errorAdvice says what to do about an error.
func errorAdvice(code gatehouse.Code) string {
	switch code {
	case gatehouse.CodeNotFound:
		return "The address is incomplete, or the page belongs to another tenant."
	case gatehouse.CodeBadToken, gatehouse.CodeLinkExpired:
		return "Open Gatehouse's inbox to see what is waiting for you."
	case gatehouse.CodeSignInRequired:
		return "Sign in, and decide in Gatehouse."
	case gatehouse.CodeRoleRequired:
		return "Ask an administrator for the role, or sign in as somebody who has it."
	case gatehouse.CodeSelfApproval:
		return "Ask another approver. People can't decide what was proposed or edited by them, or on their behalf."
	case gatehouse.CodeSenderNotAllowed:
		return "The step's from: in the workflow lists who may send this event. Ask one of them."
	case gatehouse.CodeEditTokenRequired, gatehouse.CodeStepUpRequired:
		return "Prove your identity with your passkey, your provider, or your edit token, and decide again."
	case gatehouse.CodeUnauthenticated:
		return "Sign in again. A set-up link works once, for thirty minutes; an administrator can create a new one."
	case gatehouse.CodeExpired:
		return "Nothing was changed. If the change is still wanted, its proposer can propose it again."
	case gatehouse.CodeAlreadyDecided, gatehouse.CodeNotAwaitingApproval:
		return "Your answer was not counted; the decision stands."
	case gatehouse.CodeAlreadyVoted:
		return "Each person has one vote. You can still change an approval to a rejection until the last vote."
	case gatehouse.CodeDigestMismatch:
		return "Nothing was decided. Look at the current state, then decide."
	case gatehouse.CodeTargetChanged:
		return "Nothing was decided. Compare the expected state with the current one. Then rebase the action on " +
			"the current state or approve it anyway, if offered; otherwise reject it."
	case gatehouse.CodeCannotRebase:
		return "Nothing was proposed; the action is unchanged. Decide it unchanged, or ask for a new proposal."
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

// fieldWord is the label of the form's field that a violation's pointer names; "" for a pointer into
// JSON that the person typed, which stays a pointer.
func fieldWord(pointer string) string {
	name, _, _ := strings.Cut(strings.TrimPrefix(strings.TrimPrefix(pointer, "/in_all"), "/"), "/")
	return map[string]string{
		"action_types": "Action types",
		"add":          "Person",
		"agent":        "Agent",
		"amounts":      "Amount of money",
		"assignee":     "To",
		"channel":      "Channel",
		"connector":    "Connector",
		"count":        "Number of actions",
		"decision":     "Decision",
		"disabled":     "Disabled",
		"ends_at":      "Until",
		"for":          "For how long",
		"from":         "For",
		"id":           "Tenant",
		"kind":         "Kind",
		"max_level":    "Highest risk level",
		"muted":        "Your messages",
		"name":         "Name",
		"note":         "Why",
		"notes":        "Why",
		"operation":    "Operation",
		"outcome":      "Outcome",
		"person":       "The same human as",
		"quiet":        "Quiet hours",
		"reason":       "Why",
		"roles":        "Roles",
		"sponsor":      "Sponsor",
		"starts_at":    "From",
		"tenant":       "Tenant",
		"text":         "Your words",
		"to":           "Delegate",
		"until":        "Until",
		"value":        "Value",
		"when":         "When",
	}[name]
}
