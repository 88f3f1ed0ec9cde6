package dispatch

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/connector"
	httpconn "github.com/gatehouse-dev/gatehouse/connector/http"
)

// serverSecret is a secret of the server that the connectors of these tests do not know.
const serverSecret = "s3cr3t-of-the-server"

// TestACallerCannotGuessASecret proposes fields whose names are beginnings of a secret's encodings, in each position
// where the connector repeats them. All are returned as the caller wrote them; only the whole secret is redacted.
func TestACallerCannotGuessASecret(t *testing.T) {
	t.Parallel()
	var percent strings.Builder
	for i := range len(serverSecret) {
		fmt.Fprintf(&percent, "%%%02x", serverSecret[i])
	}
	sqlTarget := registryOf(t, Target{Name: "shop", Connector: echoingSQL("")(t)}).WithSecrets([]string{serverSecret})
	said := func(text string) string {
		a := &gatehouse.Action{
			Tenant: "default", ID: "act_1", Proposal: gatehouse.Proposal{
				Connector: "shop", Operation: "update",
				Target:         gatehouse.Target{EntityType: "item", EntityRef: "1", Version: "7"},
				ProposedChange: gatehouse.ObjectJSON(gatehouse.Member{Name: text, Value: "1"}),
			},
		}
		var e *gatehouse.Error
		if err := sqlTarget.Validate(a); !errors.As(err, &e) || len(e.Violations) == 0 {
			t.Fatalf("an unknown field is accepted: %v", err)
		}
		j := gatehouse.StringJSON(text)
		repeats := able{
			check: func() (connector.State, error) { return connector.State{Expected: j, Actual: j}, nil },
			readBack: func() (connector.Finding, connector.Result, error) {
				return connector.Inconclusive, connector.Result{}, &connector.Error{Kind: connector.Terminal, Detail: text}
			},
		}
		r := registryOf(t, Target{Name: "shop", Connector: repeats}).WithSecrets([]string{serverSecret})
		_, expected, actual, _, err := r.Check(t.Context(), a)
		must(t, err)
		_, failed := r.ReadBack(t.Context(), a, 1)
		by := r.redactor("default")
		p := boundPreview(by, gatehouse.Preview{Changes: []gatehouse.PreviewChange{{Path: text, Proposed: j, After: j}}})
		res, _ := redactCall(by, connector.Result{
			RequestMetadata:  gatehouse.ObjectJSON(gatehouse.Member{Name: "url", Value: j}),
			ResponseMetadata: `{"body":{"echo":` + j + `}}`,
		}, nil)
		return fmt.Sprint(e.Violations[0].Pointer, expected, actual, failed, p, res.RequestMetadata, res.ResponseMetadata)
	}
	for _, before := range []string{"", strings.Repeat("x ", 128)} {
		if got := said(before + serverSecret); strings.Contains(got, serverSecret) {
			t.Errorf("the whole secret is returned: %s", got)
		}
		for n := 1; n < percent.Len(); n++ {
			guesses := []string{before + percent.String()[:n], before + percent.String()[:n] + "…"}
			if n < len(serverSecret) {
				guesses = append(guesses, before+serverSecret[:n], before+serverSecret[:n]+"…")
			}
			for _, guess := range guesses {
				if got := said(guess); strings.Contains(got, connector.Redacted) {
					t.Fatalf("the guess %q is confirmed: %s", guess, got)
				}
			}
		}
	}
}

// TestCutAnswersRevealNoSecret has a target repeat a secret of the server where the connector cuts off the answer: a
// header, the body in a receipt, and what the target says. The answer breaks off too, in the middle of the secret.
func TestCutAnswersRevealNoSecret(t *testing.T) {
	t.Parallel()
	for name, answer := range map[string]func(w http.ResponseWriter, cut int){
		"a header": func(w http.ResponseWriter, cut int) {
			w.Header().Set("Location", strings.Repeat("x", 509-cut)+serverSecret+" and more")
		},
		"the body of a receipt": func(w http.ResponseWriter, cut int) {
			fmt.Fprint(w, strings.Repeat("x", 4093-cut)+serverSecret+" and more")
		},
		"a refusal": func(w http.ResponseWriter, cut int) {
			w.WriteHeader(http.StatusUnprocessableEntity)
			fmt.Fprint(w, strings.Repeat("x", 2045-cut)+serverSecret+" and more")
		},
		"a body that breaks off": func(w http.ResponseWriter, cut int) {
			w.Header().Set("Content-Length", "1000")
			fmt.Fprint(w, "you sent "+serverSecret[:cut])
		},
	} {
		for _, cut := range []int{4, 10, len(serverSecret) - 1} {
			s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { answer(w, cut) }))
			t.Cleanup(s.Close)
			c, err := httpconn.New(t.Context(), httpconn.Config{
				BaseURL: s.URL, AllowPrivate: true, Operations: map[string]httpconn.Operation{
					"update": {Class: connector.ClassC, Method: "POST", Path: "/items"},
				},
			}, nil)
			must(t, err)
			r := registryOf(t, Target{Name: "shop", Connector: c}).WithSecrets([]string{serverSecret})
			res, failure := r.execute(context.Background(), c, connector.Call{Tenant: "default", Operation: "update"})
			said := fmt.Sprint(res.ResponseMetadata)
			if failure != nil {
				said += failure.Says
			}
			if strings.Contains(said, serverSecret[:4]) || !strings.Contains(said, connector.Redacted+connector.Ellipsis) {
				t.Errorf("%s, cut after %d bytes of the secret: …%s", name, cut, said[max(0, len(said)-300):])
			}
		}
	}
}

// TestSecretsOfATenantAreRedactedInItsDataAlone: a tenant's secret stays an ordinary word of the others.
func TestSecretsOfATenantAreRedactedInItsDataAlone(t *testing.T) {
	t.Parallel()
	tells := able{readBack: func() (connector.Finding, connector.Result, error) {
		return connector.Present, connector.Result{ExternalID: "critical " + serverSecret}, nil
	}}
	r := registryOf(t)
	r.Replace([]Target{{Name: "shop", Connector: tells, Tenants: []string{AllTenants}}}, nil,
		Secrets{AllTenants: {serverSecret}, "acme": {"critical"}})
	for tenant, want := range map[string]string{
		"acme": "[redacted] [redacted]", "default": "critical [redacted]", "other": "critical [redacted]",
	} {
		a := &gatehouse.Action{Tenant: tenant, Proposal: gatehouse.Proposal{Connector: "shop", Operation: "update"}}
		receipt, err := r.ReadBack(t.Context(), a, 1)
		if err != nil || receipt == nil || receipt.ExternalID != want {
			t.Errorf("%s: %+v, %v, want %s", tenant, receipt, err, want)
		}
		if got := r.RedactText(tenant, "critical "+serverSecret); got != want {
			t.Errorf("%s: %s, want %s", tenant, got, want)
		}
	}
}
