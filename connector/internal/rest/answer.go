package rest

import (
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/connector"
)

// maxShown limits the part of an answer's body that a receipt keeps, maxShownHeader the part of each
// header, in bytes.
const (
	maxShown       = 4 << 10
	maxShownHeader = 512
)

// shownHeaders are the headers of an answer that a receipt keeps.
var shownHeaders = []string{
	"Content-Type", "Date", "Etag", "Last-Modified", "Location", "Retry-After",
	"Request-Id", "X-Request-Id", "X-Amzn-Requestid", "X-Correlation-Id", "Idempotency-Replayed", "Idempotent-Replayed",
}

// JSON is the answer's body in canonical form, "" when it was cut off or is not JSON.
func (a *Answer) JSON() gatehouse.JSON {
	if a.Cut != "" {
		return ""
	}
	j, err := gatehouse.Canonicalize(a.Body)
	if err != nil {
		return ""
	}
	return j
}

// Redact removes a secret that the target has repeated.
func (a *Answer) Redact(secret string) {
	r := connector.NewRedactor([]string{secret})
	if j := a.JSON(); j != "" && r.FindsJSON(j) {
		a.Body = []byte(r.JSON(j))
	} else if a.Cut != "" {
		a.Body = []byte(r.CutText(string(a.Body)))
	} else if j == "" && r.Finds(string(a.Body)) {
		a.Body = []byte(r.Text(string(a.Body)))
	}
	for _, values := range a.Header {
		for i := range values {
			values[i] = r.Text(values[i])
		}
	}
}

// Metadata describes the answer for the receipt. doc is the result of JSON, or "".
func (a *Answer) Metadata(doc gatehouse.JSON) gatehouse.JSON {
	members := []gatehouse.Member{{Name: "status", Value: gatehouse.JSON(strconv.Itoa(a.Status))}}
	var hs []gatehouse.Member
	for _, name := range shownHeaders {
		if v := a.Header.Get(name); v != "" {
			hs = append(hs, gatehouse.Member{Name: name, Value: gatehouse.StringJSON(cutText(v, maxShownHeader))})
		}
	}
	members = append(members, gatehouse.Member{Name: "headers", Value: gatehouse.ObjectJSON(hs...)})
	body := string(a.Body)
	if doc != "" {
		body = string(doc)
	}
	cut := a.Cut
	if cut == "" && len(body) > maxShown {
		cut = "only the first 4 KiB are kept"
	}
	body = a.shorten(body, maxShown)
	if len(body) > 0 {
		value, err := gatehouse.Canonicalize([]byte(body))
		if err != nil {
			value = gatehouse.StringJSON(body)
		}
		members = append(members, gatehouse.Member{Name: "body", Value: value})
	}
	if cut != "" {
		members = append(members, gatehouse.Member{Name: "body_truncated", Value: gatehouse.StringJSON(cut)})
	}
	return gatehouse.ObjectJSON(members...)
}

// Text is the answer's body as text, cut to the length that is stored. doc is the result of JSON, or "".
func (a *Answer) Text(doc gatehouse.JSON) string {
	body := string(a.Body)
	if doc != "" {
		body = string(doc)
	}
	return a.shorten(strings.ToValidUTF8(body, "\uFFFD"), gatehouse.MaxTargetSays)
}

// shorten is cutText for the answer's body. A body that was cut off when it was received also ends with an ellipsis,
// so that the dispatcher removes the beginning of a secret from its end.
func (a *Answer) shorten(body string, limit int) string {
	if a.Cut != "" && body != "" {
		body += connector.Ellipsis
	}
	return cutText(body, limit)
}

// cutText shortens a text to at most limit bytes, without splitting a character.
func cutText(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	end := limit - len(connector.Ellipsis)
	for end > 0 && !utf8.RuneStart(s[end]) {
		end--
	}
	return s[:end] + connector.Ellipsis
}
