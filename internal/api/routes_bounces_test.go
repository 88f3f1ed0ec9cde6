package api

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/gatehouse-dev/gatehouse"
)

// ReceiveBounce stands in for the check of the address.
func (*fake) ReceiveBounce(_ context.Context, recipient string, mail []byte) (*gatehouse.Bounce, error) {
	if recipient != "bounce+x@gate.example" && !strings.HasPrefix(string(mail), "To: bounce+x@gate.example") {
		return nil, gatehouse.E(gatehouse.CodeBadToken, "no valid MAC")
	}
	return &gatehouse.Bounce{Result: gatehouse.BounceFailed}, nil
}

// TestBounces: a returned mail needs no key, since its address authorizes it. Its size and its rate are bounded.
func TestBounces(t *testing.T) {
	t.Parallel()
	const path = Prefix + "/hooks/mail/bounces"
	const mail = "To: bounce+x@gate.example\r\n\r\n"
	post := func(query, body string) request { return request{method: "POST", path: path + query, body: body} }
	s := newServer(t, newFake())
	for query, body := range map[string]string{"": mail, "?recipient=bounce%2Bx@gate.example": "Subject: x\r\n\r\n"} {
		if w := post(query, body).send(s); w.Code != http.StatusOK || w.Body.String() != `{"result":"failed"}` {
			t.Errorf("%s: %d %s", query, w.Code, w.Body)
		}
	}
	if w := post("", mail+strings.Repeat("x", gatehouse.MaxBounce-len(mail))).send(s); w.Code != http.StatusOK {
		t.Errorf("the longest: %d", w.Code)
	}
	wantCode(t, post("", "To: other@gate.example\r\n\r\n").send(s), gatehouse.CodeBadToken)
	wantCode(t, post("?recipient="+strings.Repeat("x", 400), mail).send(s), gatehouse.CodeInvalid)
	wantCode(t, post("?to=x", mail).send(s), gatehouse.CodeInvalid)
	long := post("", mail+strings.Repeat("x", gatehouse.MaxBounce))
	wantCode(t, long.send(s), gatehouse.CodeBodyTooLarge)
	chunked := long.http()
	chunked.ContentLength = -1
	w := httptest.NewRecorder()
	s.ServeHTTP(w, chunked)
	wantCode(t, w, gatehouse.CodeBodyTooLarge)
	get := post("", "")
	get.method = "GET"
	if w := get.send(s); w.Code != http.StatusMethodNotAllowed {
		t.Errorf("GET: %d", w.Code)
	}

	limited := newServer(t, newFake(), func(c *Config) { c.HooksPerSecond, c.HookBurst = 0.001, 1 })
	if w := post("", mail).send(limited); w.Code != http.StatusOK {
		t.Errorf("the first: %d", w.Code)
	}
	wantCode(t, post("", mail).send(limited), gatehouse.CodeRateLimited)

	doc, _ := readDocument(t, s)
	op := doc.Paths[path]["post"]
	if op.OperationID != "receiveBounce" || op.Security == nil || len(op.Security) != 0 {
		t.Errorf("%+v", op)
	}
	if r := op.Responses["401"]; strings.Join(r.Codes, " ") != "bad_token" {
		t.Errorf("401: %v", r)
	}
}
