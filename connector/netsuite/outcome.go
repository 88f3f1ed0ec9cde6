package netsuite

import (
	"net/http"
	"strconv"
	"strings"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/connector"
	"github.com/gatehouse-dev/gatehouse/connector/internal/rest"
)

// meaning is the classification of an error code of NetSuite.
type meaning struct {
	kind connector.Kind
	code string
}

// meanings classifies the errors after which the failed operation has saved nothing. A script that throws
// such an error may have saved something in an earlier operation.
var meanings = map[string]meaning{
	// The account's request limit is reached (RESTlets, record service).
	"SSS_REQUEST_LIMIT_EXCEEDED": {connector.Transient, "rate_limited"},
	"EXCEEDED_MAX_CONCUR_RQST":   {connector.Transient, "rate_limited"},
	"EXCEEDED_CONCURRENCY_LIMIT": {connector.Transient, "rate_limited"},
	// An overloaded account also refuses valid logins.
	"INVALID_LOGIN":         {connector.Transient, "login_refused"},
	"INVALID_LOGIN_ATTEMPT": {connector.Transient, "login_refused"},

	"RCRD_HAS_BEEN_CHANGED":    {connector.Terminal, string(gatehouse.CodeTargetChanged)},
	"RCRD_DSNT_EXIST":          {connector.Terminal, string(gatehouse.CodeTargetChanged)},
	"NONEXISTENT_ID":           {connector.Terminal, string(gatehouse.CodeTargetChanged)},
	"UNIQUE_RCRD_ID_REQD":      {connector.Terminal, "already_exists"},
	"DUP_RCRD":                 {connector.Terminal, "already_exists"},
	"CLOSED_TRAN_PRD":          {connector.Terminal, "period_closed"},
	"INSUFFICIENT_PERMISSION":  {connector.Terminal, "forbidden"},
	"INVALID_KEY_OR_REF":       {connector.Terminal, "invalid_reference"},
	"INVALID_FLD_VALUE":        {connector.Terminal, "invalid_value"},
	"INVALID_CONTENT":          {connector.Terminal, "invalid_value"},
	"INVALID_RCRD_TYPE":        {connector.Terminal, "invalid_value"},
	"SSS_INVALID_SCRIPTLET_ID": {connector.Terminal, "restlet_missing"},
}

// errorCode finds NetSuite's error code in the answer of a RESTlet or of the record service.
func errorCode(doc gatehouse.JSON) string {
	if e, ok := doc.Get("error"); ok {
		if code, ok := e.Get("code"); ok {
			s, _ := code.Text()
			return s
		}
	}
	details, _ := doc.Get("o:errorDetails")
	elements, err := details.Elements()
	if err != nil || len(elements) == 0 {
		return ""
	}
	code, _ := elements[0].Get("o:errorCode")
	s, _ := code.Text()
	return s
}

// scriptFailure classifies an unsuccessful answer of a script that may have saved something before its error.
func (x *exchange) scriptFailure() *connector.Error {
	e := x.refusal(true)
	if x.answer.Status == http.StatusBadRequest && e.Kind == connector.Terminal {
		e.Kind = connector.Ambiguous
	}
	return e
}

// refusal classifies an unsuccessful answer. ofScript is true for the answer of a script, which may have
// saved something before its error.
func (x *exchange) refusal(ofScript bool) *connector.Error {
	e := x.refused(ofScript)
	if e.Code == "login_refused" && strings.HasPrefix(x.request.Header.Get("Authorization"), "OAuth ") {
		x.answer.ClockSkew(e)
	}
	return e
}

func (x *exchange) refused(ofScript bool) *connector.Error {
	a := x.answer
	e := &connector.Error{
		Code: "http_" + strconv.Itoa(a.Status), Detail: a.Describe(), Says: a.Text(x.doc),
		RetryAfter: rest.RetryAfter(a.Header),
	}
	code := errorCode(x.doc)
	if code != "" {
		e.Detail += ", " + gatehouse.Quote(code)
	}
	if m, ok := meanings[code]; ok {
		e.Kind, e.Code = m.kind, m.code
		return e
	}
	if code == "SSS_USAGE_LIMIT_EXCEEDED" {
		e.Code = "usage_limit"
		if !ofScript {
			e.Kind = connector.Terminal
		}
		return e
	}
	switch s := a.Status; {
	case s == http.StatusUnauthorized:
		e.Kind, e.Code = connector.Transient, "login_refused"
	case s == http.StatusTooManyRequests:
		e.Kind, e.Code = connector.Transient, "rate_limited"
	case s == http.StatusRequestTimeout:
	case s >= 300 && s < 400 && s != http.StatusSeeOther:
		e.Kind, e.Code = connector.Terminal, "redirect"
	case s == http.StatusBadRequest && ofScript:
		// The error was thrown by a script, which may have saved something before.
		if code != "" {
			e.Code = "script_" + strings.ToLower(clean(code))
		}
	case s >= 400 && s < 500:
		e.Kind = connector.Terminal
	}
	return e
}

// clean keeps the characters that are permitted in a code.
func clean(code string) string {
	code = strings.Map(func(r rune) rune {
		if 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || r == '_' {
			return r
		}
		return '_'
	}, code)
	return code[:min(len(code), 60)]
}
