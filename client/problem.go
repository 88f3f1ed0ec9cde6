package client

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"mime"
	"net/http"
	"strconv"

	"github.com/gatehouse-dev/gatehouse"
)

// errGateway is the cause of errors that a gateway in front of the server returned.
var errGateway = errors.New("client: the answer is not from the server itself")

// standardMembers are the members of a problem document that do not belong to the error's context.
var standardMembers = map[string]bool{
	"type": true, "title": true, "status": true, "detail": true, "instance": true,
	"code": true, "retryable": true, "errors": true,
}

// problemOf converts an answer that is not 2xx to an error. Numbers in its context are json.Number,
// exactly as the server wrote them.
func problemOf(resp *http.Response, raw []byte) error {
	e := &gatehouse.Error{}
	if after, err := strconv.Atoi(resp.Header.Get("Retry-After")); err == nil && after > 0 {
		e.RetryAfter = after
	}
	members := make(map[string]any)
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	if kind != "application/problem+json" || d.Decode(&members) != nil {
		e.Code = codeFor(resp.StatusCode)
		e.Detail = fmt.Sprintf("the answer %s is not from Gatehouse: is the address right?", resp.Status)
		if bytes.Contains(raw, []byte("HTTP request to an HTTPS server")) { // net/http's own words
			e.Detail = "the server speaks HTTPS: its address begins with https://"
		}
		return e.Because(errGateway)
	}
	var known struct {
		Code   gatehouse.Code        `json:"code"`
		Detail string                `json:"detail"`
		Errors []gatehouse.Violation `json:"errors"`
	}
	if json.Unmarshal(raw, &known) != nil || known.Code == "" {
		known.Code = codeFor(resp.StatusCode)
	}
	e.Code, e.Detail, e.Violations = known.Code, known.Detail, known.Errors
	for name, value := range members {
		if !standardMembers[name] {
			e = e.With(name, value)
		}
	}
	return e
}

// codeFor is the closest error code for an answer without one.
func codeFor(status int) gatehouse.Code {
	switch status {
	case http.StatusUnauthorized:
		return gatehouse.CodeUnauthenticated
	case http.StatusForbidden:
		return gatehouse.CodeRoleRequired
	case http.StatusNotFound:
		return gatehouse.CodeNotFound
	case http.StatusMethodNotAllowed:
		return gatehouse.CodeMethodNotAllowed
	case http.StatusRequestEntityTooLarge:
		return gatehouse.CodeBodyTooLarge
	case http.StatusTooManyRequests:
		return gatehouse.CodeRateLimited
	case http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return gatehouse.CodeBusy
	}
	return gatehouse.CodeInternal
}
