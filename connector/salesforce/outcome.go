package salesforce

import (
	"net/http"
	"regexp"
	"strings"
	"time"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/connector"
	"github.com/gatehouse-dev/gatehouse/connector/internal/rest"
)

// held is how long no call is made after the limit of the org was reached. Salesforce
// says no time: the limit is one of calls within 24 hours, or of long calls at once.
const held = time.Minute

var codeForm = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_]{0,79}$`)

// errorCode is the first of an answer's errors, which are a list of {message, errorCode,
// fields}; "" for none.
func errorCode(doc gatehouse.JSON) string {
	elements, err := doc.Elements()
	if err != nil || len(elements) == 0 {
		return ""
	}
	code := rest.Text(elements[0], "errorCode")
	if !codeForm.MatchString(code) {
		return ""
	}
	return code
}

// outcome classifies an answer that is no success. Salesforce's codes prove more than the
// status does: a request is one transaction, and an error below 500 rolled it back.
func outcome(a *rest.Answer) *connector.Error {
	e := a.Failure()
	doc := a.JSON()
	code := errorCode(doc)
	if code != "" {
		e.Detail += ", " + code
	}
	switch {
	case code == "REQUEST_LIMIT_EXCEEDED" && a.Status == http.StatusForbidden:
		e.Kind, e.Code, e.RetryAfter = connector.Transient, "rate_limited", max(e.RetryAfter, held)
	case code == "UNABLE_TO_LOCK_ROW" && a.Status < 500:
		e.Kind, e.Code = connector.Transient, "row_locked"
	case code == "INVALID_SESSION_ID" && a.Status == http.StatusUnauthorized:
		e.Kind, e.Code = connector.Transient, "session_expired"
	case a.Status == http.StatusPreconditionFailed:
		e.Code = string(gatehouse.CodeTargetChanged)
		e.Detail = "somebody has changed the record since it was read"
	case a.Status == http.StatusNotFound:
		e.Code = string(gatehouse.CodeTargetChanged)
	case a.Status == http.StatusMultipleChoices:
		e.Code, e.Detail = "several_records", "several records have the key: its field is not unique"
	case e.Kind == connector.Terminal && code != "" && a.Status >= 400:
		e.Code = strings.ToLower(code)
	}
	return e
}

// failure is outcome, and lets the connector rest where the org's limit was reached.
func (c *Connector) failure(a *rest.Answer) *connector.Error {
	e := outcome(a)
	if e.Code == "rate_limited" {
		c.api.Hold(e.RetryAfter)
	}
	return e
}
