package kubernetes_test

import (
	"strings"
	"testing"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/connector"
	"github.com/gatehouse-dev/gatehouse/connector/connectortest"
)

// TestCreateRetried: the object of an earlier call is compared with what was approved.
func TestCreateRetried(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ edit, wrong string }{
		"the same":             {`{}`, ""},
		"others' values":       {`{"data":{"more":"1"}}`, ""},
		"others' metadata":     {`{"metadata":{"labels":{"team":"shop"},"annotations":{"seen":"yes"}}}`, ""},
		"another value":        {`{"data":{"level":"info"}}`, `.data.level is "info" instead of "debug"`},
		"no value":             {`{"data":null}`, `.data.level is null`},
		"another label":        {`{"metadata":{"labels":{"app":"api"}}}`, `.metadata.labels.app is "api"`},
		"the label is removed": {`{"metadata":{"labels":{"app":null}}}`, `.metadata.labels.app is null`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newCluster(t)
			k, call := c.connector(nil), c.create(settings)
			made, err := k.Execute(t.Context(), call)
			connectortest.Must(t, err)
			c.do("MERGE", "/api/v1/namespaces/"+c.namespace+"/configmaps/settings", "someone", test.edit)
			before := c.effects()
			call.Attempt++
			res, err := k.Execute(t.Context(), call)
			if test.wrong == "" {
				connectortest.Must(t, err)
				finding(t, k, call, connector.Present)
			} else {
				if detail := wantFailure(t, err, connector.Ambiguous, "not_as_approved"); !strings.Contains(detail, test.wrong) {
					t.Errorf("the detail is %q", detail)
				}
				finding(t, k, call, connector.Inconclusive)
			}
			if res.ExternalID != made.ExternalID || (res.Reversal == nil) != (test.wrong != "") || c.effects() != before {
				t.Errorf("%q after %q, the reversal %+v, %d effects", res.ExternalID, made.ExternalID, res.Reversal,
					c.effects()-before)
			}
		})
	}
}

// TestCreateRetriedWithDefaults: the values that the server sets by itself are no difference.
func TestCreateRetriedWithDefaults(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	k, call := c.connector(nil), c.call("create", gatehouse.JSON(
		`{"spec":{"replicas":1,"selector":{"matchLabels":{"app":"api"}},"template":{"metadata":{"labels":{"app":"api"}},`+
			`"spec":{"containers":[{"name":"api","image":"api:1"}]}}}}`), "")
	call.Target.EntityRef = c.namespace + "/api"
	_, err := k.Execute(t.Context(), call)
	connectortest.Must(t, err)
	call.Attempt++
	_, err = k.Execute(t.Context(), call)
	connectortest.Must(t, err)
	finding(t, k, call, connector.Present)
}
