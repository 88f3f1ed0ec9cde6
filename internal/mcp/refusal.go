package mcp

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"strconv"

	"github.com/gatehouse-dev/gatehouse"
)

// provesRefusal reports whether a JSON-RPC error proves that the server did nothing: its code is one by which a server
// refuses a request. modern says that the request named a version of the modern protocol, in which three more codes
// have this meaning: in JSON-RPC, a server may use them for any error.
func provesRefusal(failure []byte, modern bool) bool {
	code, err := strconv.Atoi(string(memberOf(failure, "code")))
	if err != nil {
		return false
	}
	switch code {
	case codeParse, codeInvalidRequest, codeNoMethod, codeInvalidParams:
		return true
	case codeHeaderMismatch, codeMissingCapability, codeUnsupportedVersion:
		return modern
	}
	return false
}

// refuses reports whether a status proves that a request was not executed. A redirect proves this only
// if it asks for the same request elsewhere (RFC 9110, section 15.4): servers send the other redirects
// after they have executed a request, too.
func refuses(code int) bool {
	switch code {
	case http.StatusTemporaryRedirect, http.StatusPermanentRedirect:
		return true
	case http.StatusRequestTimeout, http.StatusConflict:
		return false
	}
	return code >= 400 && code < 500
}

// errorOf returns the JSON-RPC error in a response, nil for none.
func errorOf(resp *http.Response) []byte {
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxClientFrame))
	if err != nil || contentType(resp) != jsonType || gatehouse.CheckJSONWithin(body, serverDepth) != nil {
		return nil
	}
	var one bytes.Buffer
	failure := memberOf(bytes.TrimSpace(body), "error")
	if len(failure) == 0 || failure[0] != '{' || json.Compact(&one, failure) != nil {
		return nil
	}
	return one.Bytes()
}
