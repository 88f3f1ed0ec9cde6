package httpconn_test

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/connector"
	httpconn "github.com/gatehouse-dev/gatehouse/connector/http"
)

// TestReadState compares the state that ReadState returns with the target's answer.
func TestReadState(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		status                       int
		body                         string
		version, pre, change         string
		want                         string // version and state, "gone", or the kind of the error
		matches                      bool
		withoutVersion, withoutCheck bool
	}{
		"the present members of the pre-image": {200, `{"v":8,"s":{"a":1.50,"b":"x","c":0}}`, "7", `{"b":"y","a":1}`,
			`{"z":1}`, `8 {"a":1.50,"b":"x"}`, false, false, false},
		"the members of the change as well": {200, `{"v":7,"s":{"a":1,"b":2,"c":3}}`, "7", `{"a":1}`, `{"b":9,"new":1}`,
			`7 {"a":1,"b":2}`, true, false, false},
		"null for a member that is gone": {200, `{"v":7,"s":{}}`, "7", `{"a":1}`, `{}`, `7 {"a":null}`, false, false, false},
		"a version alone":                {200, `{"v":8,"s":{"b":2}}`, "7", ``, `{"b":9}`, `8 {"b":2}`, false, false, false},
		"a version alone, and no state":  {200, `{"v":8}`, "7", ``, `{"b":9}`, `8 `, false, false, false},
		"a pre-image alone":              {200, `{"v":8,"s":{"a":2}}`, "", `{"a":1}`, `{}`, ` {"a":2}`, false, false, false},
		"gone":                           {410, `{}`, "7", `{"a":1}`, `{}`, "gone", false, false, false},
		"an error":                       {500, `{}`, "7", `{"a":1}`, `{}`, "transient", false, false, false},
		"no JSON":                        {200, `<html>`, "7", `{"a":1}`, `{}`, "transient", false, false, false},
		"no version":                     {200, `{"s":{"a":1}}`, "7", `{"a":1}`, `{}`, "terminal", false, false, false},
		"a state that is a list":         {200, `{"v":8,"s":[1]}`, "7", `{"a":1}`, `{}`, "terminal", false, false, false},
		"no way to read the version":     {200, `{"v":8,"s":{"a":2}}`, "7", `{"a":1}`, `{}`, "terminal", false, true, false},
		"no way to read at all":          {200, `{"v":8,"s":{"a":2}}`, "7", `{"a":1}`, `{}`, "terminal", false, false, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			asked := 0
			target := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				asked++
				w.WriteHeader(test.status)
				fmt.Fprint(w, test.body)
			}))
			defer target.Close()
			op := httpconn.Operation{Method: "PATCH", Path: "/{entity_ref}",
				Check: &httpconn.Check{Path: "/{entity_ref}", Version: "/v", State: "/s"}}
			if test.withoutVersion {
				op.Check.Version = ""
			}
			if test.withoutCheck {
				op.Check = nil
			}
			c := newConnector(t,
				httpconn.Config{BaseURL: target.URL, AllowPrivate: true, Operations: map[string]httpconn.Operation{"update": op}})
			call := connector.Call{
				Operation: "update", Target: gatehouse.Target{EntityType: "x", EntityRef: "1", Version: test.version},
				CurrentState: gatehouse.JSON(test.pre), ProposedChange: gatehouse.JSON(test.change),
			}
			s, err := c.ReadState(t.Context(), call)
			got := s.Version + " " + string(s.CurrentState)
			var failure *connector.Error
			switch {
			case errors.As(err, &failure):
				got = failure.Kind.String()
			case err != nil:
				t.Fatal(err)
			case s.Gone:
				got = "gone"
			}
			if got != test.want || s.Matches != test.matches {
				t.Errorf("%q, matches %v; want %q, %v (%v)", got, s.Matches, test.want, test.matches, err)
			}
			if reads := c.ReadsState(call); reads != (asked > 0) {
				t.Errorf("ReadsState says %v, and the target was asked %d times", reads, asked)
			}
		})
	}
}
