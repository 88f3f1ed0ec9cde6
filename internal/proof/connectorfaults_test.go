package proof

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/emersion/go-smtp"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/connector"
)

// subject is a connector under a fault, with the fakes of all targets.
type subject struct {
	*mixture
	name      string
	connector connector.Connector
	call      connector.Call
	requests  atomic.Int64
	writes    atomic.Int64
}

func newSubject(t *testing.T, name string) *subject {
	t.Helper()
	s := &subject{mixture: &mixture{}, name: name}
	s.serve(t)
	s.connector, s.call = mixtureCall(t, s.mixture, name)
	s.answers(func(_ http.ResponseWriter, _ *http.Request) bool { return false })
	return s
}

// answers counts requests, and answers those that the function handles instead of the fake.
func (s *subject) answers(take func(http.ResponseWriter, *http.Request) bool) {
	breaks := func(w http.ResponseWriter, r *http.Request, next http.Handler) {
		s.requests.Add(1)
		if mixtureWrites(r) {
			s.writes.Add(1)
		}
		if !take(w, r) {
			next.ServeHTTP(w, r)
		}
	}
	s.breaks.Store(&breaks)
}

// refuse lets the target answer every request with a status, and mail with a code.
func (s *subject) refuse(status, code int) {
	s.answers(func(w http.ResponseWriter, _ *http.Request) bool {
		w.Header().Set("Retry-After", "1")
		w.WriteHeader(status)
		return true
	})
	s.mail.Recipients(func(string) error { return &smtp.SMTPError{Code: code, Message: "later"} })
}

// fails makes a call that has no effect.
func (s *subject) fails(t *testing.T, with connector.Connector) *connector.Error {
	t.Helper()
	requests, writes := s.requests.Load(), s.writes.Load()
	s.call.Attempt++
	_, err := with.Execute(t.Context(), s.call)
	var failure *connector.Error
	if !errors.As(err, &failure) {
		t.Fatalf("%v (%T)", err, err)
	}
	if n := s.total(); n != 0 {
		t.Errorf("%d effects", n)
	}
	if n := s.requests.Load() - requests; n > 3 {
		t.Errorf("%d requests in one call", n)
	}
	if failure.Kind == connector.Ambiguous && s.writes.Load() != writes+1 {
		t.Errorf("%v, though nothing was sent", failure)
	}
	return failure
}

// applies repeats the call, as the target asks for it, until it has its only effect.
func (s *subject) applies(t *testing.T, with connector.Connector) {
	t.Helper()
	for end := time.Now().Add(time.Minute); ; {
		s.call.Attempt++
		_, err := with.Execute(t.Context(), s.call)
		var failure *connector.Error
		switch {
		case err == nil:
			if n := s.total(); n != 1 {
				t.Errorf("%d effects", n)
			}
			return
		case !errors.As(err, &failure) || time.Now().After(end) ||
			failure.Kind != connector.NotSent && failure.Kind != connector.Transient:
			t.Fatal(err)
		}
		time.Sleep(failure.RetryAfter)
	}
}

// connectorFaults are what targets do beside the answers of TestBrokenAnswers.
var connectorFaults = map[string]func(*testing.T, *subject){
	"429 storm": func(t *testing.T, s *subject) {
		s.refuse(http.StatusTooManyRequests, 450)
		for range 3 {
			failure := s.fails(t, s.connector)
			if failure.Kind != connector.NotSent && failure.Kind != connector.Transient ||
				failure.RetryAfter == 0 && s.name != "email" {
				t.Errorf("%+v", failure)
			}
		}
		s.answers(func(http.ResponseWriter, *http.Request) bool { return false })
		s.mail.Recipients(nil)
		s.applies(t, s.connector)
	},
	"outage": func(t *testing.T, s *subject) {
		s.refuse(http.StatusServiceUnavailable, 421)
		for range 10 {
			failure := s.fails(t, s.connector)
			if failure.Kind == connector.Terminal {
				t.Errorf("%+v", failure)
			}
			if failure.Kind == connector.Ambiguous && classOf(s.name) == "C" {
				return // it is not called again
			}
		}
		s.answers(func(http.ResponseWriter, *http.Request) bool { return false })
		s.mail.Recipients(nil)
		s.applies(t, s.connector)
	},
	"rotated credentials": func(t *testing.T, s *subject) {
		const expired = "credential-that-has-expired"
		old := s.connect(t, s.name, expired)
		if old.Fingerprint() != s.connector.Fingerprint() {
			t.Error("a rotated secret sets approvals aside")
		}
		if s.name != "stepfunctions" && s.name != "desk" && s.name != "help" {
			s.answers(func(w http.ResponseWriter, _ *http.Request) bool { // the fake does not check credentials
				w.WriteHeader(http.StatusUnauthorized)
				return true
			})
		}
		failure := s.fails(t, old)
		if failure.Kind == connector.Ambiguous || strings.Contains(failure.Error()+failure.Says, expired) {
			t.Errorf("%+v", failure)
		}
		s.answers(func(http.ResponseWriter, *http.Request) bool { return false })
		s.applies(t, s.connector)
	},
	"dropped field": func(t *testing.T, s *subject) {
		falsified(t, s, func(f falsification) (string, string) { return f.name, f.drop })
	},
	"changed value": func(t *testing.T, s *subject) {
		falsified(t, s, func(f falsification) (string, string) { return f.value, f.other })
	},
	"hostile content": func(t *testing.T, s *subject) {
		ref := s.call.Target.EntityRef
		hostile := []string{"/../x", "/..", "?a=b", "#f", "\r\nX-Evil: 1", "%2e%2e%2f", "\x00", " ", "\u202e"}
		if s.name == "netsuite" {
			hostile = nil // a creation sends no reference
		}
		for i, more := range hostile {
			s.call.Target.EntityRef, s.call.IdempotencyKey = ref+more, fmt.Sprintf("act_1:%d", i)
			if _, err := s.connector.Execute(t.Context(), s.call); err == nil && s.name != "http" {
				t.Errorf("%q is accepted as a reference", ref+more)
			}
		}
		for of := range s.all() { // http takes a text as one segment of a path
			if more, ok := strings.CutPrefix(of, "http "+ref); !ok || !slices.Contains(hostile, more) {
				t.Errorf("an effect on %q", of)
			}
		}
		s.call.Target.EntityRef, s.call.IdempotencyKey = ref, "act_1:99"
		before, text := s.total(), falsifications[s.name].text
		if text == "" {
			return // the change has none
		}
		change, err := gatehouse.Canonicalize([]byte(strings.Replace(string(s.call.ProposedChange), text,
			`a\r\nX-Evil: 1\u202e\u0000</script>\"'&x=1#`, 1)))
		if err != nil {
			t.Fatal(err)
		}
		s.call.ProposedChange = change
		_, err = s.connector.Execute(t.Context(), s.call)
		var failure *connector.Error
		switch n := s.total() - before; {
		case err == nil && n != 1:
			t.Errorf("%d effects", n)
		case err != nil && (!errors.As(err, &failure) || failure.Kind != connector.Terminal || n != 0):
			t.Errorf("%v, %d effects", err, n)
		}
	},
}

// falsification says how a target stores something else than it is sent: it drops a field with
// another name, or stores another value. text is a text of the change.
type falsification struct{ name, drop, value, other, text string }

var falsifications = map[string]falsification{
	"stripe":        {"amount=", "dropped=", "1250", "1251", "eur"},
	"github":        {`"body":`, `"dropped":`, "hello", "hullo", "hello"},
	"jira":          {`"body":`, `"dropped":`, "hello", "hullo", "hello"},
	"salesforce":    {`"StageName":`, `"dropped":`, "Won", "Lost", "Won"},
	"kubernetes":    {`"replicas":`, `"dropped":`, `"replicas":5`, `"replicas":6`, ""},
	"netsuite":      {`"companyName":`, `"dropped":`, "Vendor", "Trader", "Vendor"},
	"slack":         {`"text":`, `"dropped":`, "after", "later", "after"},
	"http":          {`"value":`, `"dropped":`, "after", "later", "after"},
	"desk":          {`"state":`, `"dropped":`, `"2"`, `"3"`, "2"},
	"help":          {`"state":`, `"dropped":`, `"2"`, `"3"`, "2"},
	"stepfunctions": {`\"order\":`, `\"dropped\":`, `order`, `other`, "1"},
	"email":         {text: "Order"},
}

// falsified: a target that stores another value than the approved one is detected.
func falsified(t *testing.T, s *subject, part func(falsification) (from, to string)) {
	from, to := part(falsifications[s.name])
	if s.name == "email" {
		t.Log("SMTP returns no values")
		return
	}
	var done atomic.Bool
	s.answers(func(_ http.ResponseWriter, r *http.Request) bool {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return true
		}
		if mixtureWrites(r) && s.name != "stepfunctions" {
			done.Store(strings.Contains(string(body), from))
			body = bytes.Replace(body, []byte(from), []byte(to), 1)
		}
		r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
		return false
	})
	_, err := s.connector.Execute(t.Context(), s.call)
	if s.name == "stepfunctions" {
		// Its answer names no values. The signature covers what is sent, and reading back compares.
		s.aws.Set(func() {
			for _, run := range s.aws.Executions {
				run.Input = strings.Replace(run.Input, strings.ReplaceAll(from, `\`, ""), strings.ReplaceAll(to, `\`, ""), 1)
			}
		})
		finding, _, err := s.connector.(connector.ReadBacker).ReadBack(t.Context(), s.call)
		if finding == connector.Present {
			t.Errorf("read back %v, %v", finding, err)
		}
		return
	}
	var failure *connector.Error
	if !errors.As(err, &failure) || failure.Code != "not_as_approved" || !done.Load() ||
		failure.Kind != connector.Ambiguous && failure.Kind != connector.Terminal {
		t.Errorf("%v; falsified: %v", err, done.Load())
	}
}

// TestConnectorFaults puts every connector through every fault: nothing is lost or applied twice, and
// no connector claims more than is proven. docs/proof/connectors.md has the whole table.
func TestConnectorFaults(t *testing.T) {
	t.Parallel()
	for _, name := range append(slices.Clone(webNames), "email") {
		for fault, run := range connectorFaults {
			t.Run(name+"/"+fault, func(t *testing.T) {
				t.Parallel()
				run(t, newSubject(t, name))
			})
		}
	}
}
