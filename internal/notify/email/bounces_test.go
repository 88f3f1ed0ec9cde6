package email

import (
	"fmt"
	"strings"
	"testing"
)

const (
	testID = "ntf_0193a1b2c3d47e5f8a9b0c1d2e3f4a5b"
	ana    = "ana@shop.example"
)

func key(c string) []byte { return []byte(strings.Repeat(c, 32)) }

func testPath(t *testing.T, keys ...[]byte) *returnPath {
	t.Helper()
	r, err := newReturnPath("Bounce@Gate.example", keys)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// TestReturnPath: the same tenant, notification and recipient always have the same envelope sender. It
// survives a change of case, and is verified for these three only, with the key that signed it.
func TestReturnPath(t *testing.T) {
	t.Parallel()
	r := testPath(t, key("a"))
	sender, err := r.sender("default", testID, ana)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(sender, "bounce+") || !strings.HasSuffix(sender, "@gate.example") ||
		strings.Index(sender, "@") > maxLocal {
		t.Errorf("%q", sender)
	}
	if again, _ := r.sender("default", testID, strings.ToUpper(ana)); again != sender {
		t.Errorf("again: %q, then %q", sender, again)
	}
	b, ok := r.parse(strings.ToUpper(sender))
	if !ok || b.notification() != testID || !r.verify(b, "default") {
		t.Fatalf("%v %+v", ok, b)
	}
	if r.verify(b, "other") {
		t.Error("verified for another tenant")
	}
	if rotated := testPath(t, key("b"), key("a")); !rotated.verify(b, "default") {
		t.Error("not verified under the previous key")
	}
	if testPath(t, key("b")).verify(b, "default") {
		t.Error("verified under another key")
	}
	at := strings.Index(sender, "@")
	proof := strings.Index(sender, ".") + 1
	for i := len("bounce+"); i < at; i++ {
		if i == proof-2 || i == proof-1 {
			continue // the id's last character, which has spare bits, and the dot
		}
		forged := []byte(sender)
		if forged[i]++; forged[i] > 'z' || forged[i] == '8' {
			forged[i] = 'a'
		}
		if b, ok := r.parse(string(forged)); ok && r.verify(b, "default") {
			t.Errorf("verified %q", forged)
		}
	}
	bo, _ := r.sender("default", testID, "bo@shop.example")
	if b, ok := r.parse(sender[:proof] + bo[proof:proof+8] + sender[proof+8:]); ok && r.verify(b, "default") {
		t.Error("verified for another recipient")
	}
	for _, other := range []string{
		"", "bounce@gate.example", sender[:at], sender + ".org", "x" + sender, sender[:proof] + "@gate.example",
		"bounce+.@gate.example", strings.Replace(sender, ".", "", 1), sender[:at-8] + sender[at:],
		"bounce+" + strings.Repeat("a", 300) + ".a@gate.example",
	} {
		if _, ok := r.parse(other); ok {
			t.Errorf("parsed %q", other)
		}
	}
}

func TestUnusableReturnPaths(t *testing.T) {
	t.Parallel()
	for address, want := range map[string]string{
		"bounce": "must be an address", "a+b@x.example": "without +", `"a b"@x.example`: "must be an address",
		"undeliverable-mail@x.example": "at most 12 characters",
	} {
		if _, err := newReturnPath(address, [][]byte{key("a")}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", address, err)
		}
	}
	if _, err := newReturnPath("bounce@x.example", nil); err == nil {
		t.Error("accepted without a key")
	}
}

// postfix is a report as Postfix writes it.
const postfix = `From MAILER-DAEMON Fri Nov 27 10:00:00 2026
Delivered-To: %s
From: MAILER-DAEMON@mx.example (Mail Delivery System)
Subject: Undelivered Mail Returned to Sender
MIME-Version: 1.0
Content-Type: multipart/report; report-type=delivery-status;
	boundary="4A.17/mx.example"

This is a MIME-encapsulated message.

--4A.17/mx.example
Content-Description: Notification
Content-Type: text/plain; charset=us-ascii

This is the mail system at host mx.example.

--4A.17/mx.example
Content-Description: Delivery report
Content-Type: message/delivery-status

Reporting-MTA: dns; mx.example
X-Postfix-Queue-ID: 4A
Arrival-Date: Fri, 27 Nov 2026 10:00:00 +0000 (UTC)

Final-Recipient: rfc822; ana@shop.example
Original-Recipient: rfc822;ana@shop.example
Action: failed
Status: 5.1.1
Remote-MTA: dns; shop.example
Diagnostic-Code: smtp; 550 5.1.1 <ana@shop.example>: Recipient address
    rejected: User unknown

--4A.17/mx.example
Content-Type: message/rfc822

Subject: the mail that was sent

Hello.

--4A.17/mx.example--
`

func TestReports(t *testing.T) {
	t.Parallel()
	mail := fmt.Sprintf(postfix, "bounce@gate.example")
	failed := report{"failed", "5.1.1", "550 5.1.1 <ana@shop.example>: Recipient address rejected: User unknown"}
	end := strings.Index(mail, "Content-Type: message/rfc822")
	replaced := func(old, with string) string { return strings.Replace(mail, old, with, 1) }
	for name, tc := range map[string]struct {
		mail string
		want report
	}{
		"failed":             {mail, failed},
		"CR LF":              {strings.ReplaceAll(mail, "\n", "\r\n"), failed},
		"cut after its end":  {mail[:end], failed},
		"cut before its end": {mail[:strings.Index(mail, "Status:")], report{}},
		"delayed": {replaced("Action: failed\nStatus: 5.1.1", "Action: delayed\nStatus: 4.4.1"),
			report{"delayed", "4.4.1", failed.diagnostic}},
		"failed after a time": {replaced("Status: 5.1.1", "Status: 4.4.7"),
			report{"failed", "4.4.7", failed.diagnostic}},
		"delayed and failed": {replaced("Final-Recipient", "Action: delayed\nStatus: 4.2.2\n\nFinal-Recipient"),
			failed},
		"relayed":           {replaced("Action: failed\nStatus: 5.1.1", "Action: relayed\nStatus: 2.0.0"), report{}},
		"no status":         {replaced("Status: 5.1.1\n", ""), report{}},
		"a status of words": {replaced("Status: 5.1.1", "Status: 5.1.x"), report{}},
		"no report":         {"To: a@b.example\nSubject: Out of office\n\nAction: failed\nStatus: 5.1.1\n", report{}},
		"another type":      {replaced("multipart/report", "multipart/mixed"), report{}},
		"no boundary":       {replaced("\n\tboundary=\"4A.17/mx.example\"", ""), report{}},
		"only in the mail": {replaced("Content-Type: message/delivery-status", "Content-Type: message/rfc822"),
			report{}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m, err := returnedMail([]byte(tc.mail))
			if err != nil {
				t.Fatal(err)
			}
			if got := readReport(m); got != tc.want {
				t.Errorf("%+v, want %+v", got, tc.want)
			}
		})
	}
}

// FuzzReports: no input panics, and no text is longer than its bound.
func FuzzReports(f *testing.F) {
	f.Add([]byte(fmt.Sprintf(postfix, "bounce@gate.example")))
	f.Add([]byte("From \n\n"))
	f.Fuzz(func(t *testing.T, raw []byte) {
		m, err := returnedMail(raw)
		if err != nil {
			return
		}
		if list := recipients(m.Header); len(list) > maxRecipients {
			t.Errorf("%d recipients", len(list))
		}
		r := readReport(m)
		if text := r.reason("bounced: "); len([]rune(text)) > maxReason+1 || strings.ContainsAny(text, "\r\n\x1b") {
			t.Errorf("%q", text)
		}
	})
}
