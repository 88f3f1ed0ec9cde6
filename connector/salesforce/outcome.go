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

// limitPause is the minimum pause of all calls after the org's limit was reached. Salesforce does not document
// how long to wait: the limit counts calls within 24 hours, or concurrent long calls.
const limitPause = time.Minute

var codeForm = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_]{0,79}$`)

// errorCode is the code of an answer's first error; "" for none. The errors are a list of {message,
// errorCode, fields}.
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

// outcome classifies an unsuccessful answer. Salesforce's codes prove more than the status: a
// request is one transaction, and a status below 500 means that it was rolled back.
func outcome(a *rest.Answer) *connector.Error {
	e := a.Failure()
	doc := a.JSON()
	code := errorCode(doc)
	if code != "" {
		e.Detail += ", " + code
	}
	switch {
	case code == "REQUEST_LIMIT_EXCEEDED" && a.Status == http.StatusForbidden:
		e.Kind, e.Code, e.RetryAfter = connector.Transient, "rate_limited", max(e.RetryAfter, limitPause)
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

// failure is outcome; if the org's limit was reached, it also pauses the connector.
func (c *Connector) failure(a *rest.Answer) *connector.Error {
	e := outcome(a)
	if e.Code == "rate_limited" {
		c.api.Hold(e.RetryAfter)
	}
	return e
}
