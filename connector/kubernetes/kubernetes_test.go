package kubernetes_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/connector"
	"github.com/gatehouse-dev/gatehouse/connector/connectortest"
	"github.com/gatehouse-dev/gatehouse/connector/kubernetes"
)

const (
	five     = gatehouse.JSON(`{"spec":{"replicas":5}}`)
	two      = gatehouse.JSON(`{"spec":{"replicas":2}}`)
	scaled   = gatehouse.JSON(`{"replicas":0}`)
	scale    = gatehouse.JSON(`{"replicas":2}`)
	restart  = gatehouse.JSON(`{"restartedAt":"2026-11-24T10:00:00Z"}`)
	settings = gatehouse.JSON(`{"data":{"level":"debug"},"metadata":{"labels":{"app":"web"}}}`)
	newImage = gatehouse.JSON(
		`{"spec":{"replicas":2,"template":{"spec":{"containers":[{"image":"nginx:2","name":"app"}]}}}}`)
	oldImage = gatehouse.JSON(`{"spec":{"template":{"spec":{"containers":[{"image":"nginx:1","name":"app"}]}}}}`)
)

// TestConformance runs the suite for each operation.
func TestConformance(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		change, pre gatehouse.JSON
		field       string
		value       [2]string
	}{
		"apply":   {five, two, "replicas", [2]string{`"replicas":5`, `"replicas":6`}},
		"scale":   {scaled, scale, "replicas", [2]string{`"replicas":0`, `"replicas":1`}},
		"restart": {restart, `{"restartedAt":null}`, "kubectl.kubernetes.io/restartedAt", [2]string{"10:00", "11:00"}},
		"delete":  {`{}`, two, "", [2]string{}},
	} {
		t.Run(name, func(t *testing.T) {
			not := connectortest.Not("a token does not contain the time", connectortest.Skewed)
			if name == "delete" {
				not[connectortest.Dropped], not[connectortest.Changed] = "a deletion has no field", "a deletion has no value"
			}
			connectortest.Run(t, connectortest.Harness{Skip: not, New: func(t *testing.T) *connectortest.Fixture {
				c := newCluster(t)
				cfg := c.config()
				force(&cfg)
				return &connectortest.Fixture{
					Connector: c.connector(force), Call: c.call(name, test.change, test.pre),
					Disturb: func(*testing.T) {
						c.do("MERGE", c.deployments()+"/web", "someone", `{"spec":{"replicas":7,"template":{"metadata":{"annotations":{`+
							`"kubectl.kubernetes.io/restartedAt":"2026-01-01T00:00:00Z"}}}}}`)
					},
					Read:    func(*testing.T) gatehouse.JSON { return c.web("spec") },
					Effects: func(*testing.T) int { return c.effects() },
					Secrets: []string{token},
					Server:  c.server, Field: test.field, Value: test.value,
					Changes: c.isChange,
					Expired: connectortest.WithSecret(kubernetes.New, cfg, "token-that-has-expired"),
				}
			}})
		})
	}
}

var finding = connectortest.WantFinding

// TestCreateLosesItsAnswer: the object that was created is found again, and not created twice.
func TestCreateLosesItsAnswer(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	k, call := c.connector(nil), c.create(settings)
	finding(t, k, call, connector.Inconclusive)
	c.behave(func() { c.lose = true })
	_, err := k.Execute(t.Context(), call)
	wantFailure(t, err, connector.Ambiguous, "connection_lost")
	c.behave(func() { c.lose = false })
	made := finding(t, k, call, connector.Present)
	res, err := k.Execute(t.Context(), call)
	if err != nil || res.ExternalID != made.ExternalID || made.ExternalID == "" || c.effects() != 1 {
		t.Errorf("%v, %q after %q, %d effects", err, res.ExternalID, made.ExternalID, c.effects())
	}
}

// TestBetween: another client writes between the connector's read and its write. The server
// refuses, although only a label changed, and the next attempt succeeds.
func TestBetween(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		change, pre gatehouse.JSON
		then        string
	}{
		"apply": {five, two, ""}, "scale": {scaled, scale, ""}, "restart": {restart, `{"restartedAt":null}`, ""},
		"delete": {"{}", two, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newCluster(t)
			k, call := c.connector(nil), c.call(name, test.change, test.pre)
			c.behave(func() {
				c.pause = func() {
					c.do("MERGE", c.deployments()+"/web", "someone", `{"metadata":{"labels":{"touched":"yes"}}}`)
				}
			})
			_, err := k.Execute(t.Context(), call)
			wantFailure(t, err, connector.Transient, "conflict")
			c.behave(func() { c.pause = nil })
			if c.effects() != 0 {
				t.Fatalf("%d effects", c.effects())
			}
			if _, err := k.Execute(t.Context(), call); err != nil || c.effects() != 1 {
				t.Errorf("again: %v, %d effects", err, c.effects())
			}
		})
	}
}

// TestGoneBetween: the object is deleted between read and write, and an apply does not create it
// again.
func TestGoneBetween(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	full := gatehouse.JSON(
		`{"spec":{"replicas":5,"selector":{"matchLabels":{"app":"web"}},"template":{"metadata":{"labels":{"app":"web"}},` +
			`"spec":{"containers":[{"image":"nginx:1","name":"app"},{"image":"fluent:1","name":"log"}]}}}}`)
	c.behave(func() { c.pause = func() { c.do("DELETE", c.deployments()+"/web", "someone", `{}`) } })
	_, err := c.connector(nil).Execute(t.Context(), c.call("apply", full, two))
	wantFailure(t, err, connector.Transient, "conflict")
	if c.effects() != 0 || c.web() != "null" {
		t.Errorf("%d effects, %s", c.effects(), c.web())
	}
}

// meet returns a function in which two callers wait for each other.
func meet(t *testing.T) func() {
	here := make(chan struct{})
	return func() {
		select {
		case here <- struct{}{}:
		case <-here:
		case <-time.After(time.Minute):
			t.Error("the other caller has not come")
		}
	}
}

// TestTwoReplicas: two processes read the same state, and both write.
func TestTwoReplicas(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	c.behave(func() { c.pause = meet(t) })
	replica := func(n gatehouse.JSON) func() error {
		k := c.connector(nil)
		return func() error {
			_, err := k.Execute(t.Context(), c.call("apply", n, two))
			return err
		}
	}
	lost := connectortest.Race(t, replica(five), replica(`{"spec":{"replicas":9}}`))
	wantFailure(t, lost, connector.Transient, "conflict")
	if c.effects() != 1 {
		t.Errorf("%d effects", c.effects())
	}
}

// TestFieldManagers: fields of another manager are not taken over unless the configuration permits
// it. Fields of an object that this manager created can be applied.
func TestFieldManagers(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	_, err := c.connector(nil).Execute(t.Context(), c.call("apply", newImage, oldImage))
	if detail := wantFailure(t, err, connector.Terminal, "field_conflict"); !strings.Contains(detail, "conflict") ||
		c.effects() != 0 {
		t.Errorf("%v, %d effects", detail, c.effects())
	}
	s, err := c.connector(nil).Check(t.Context(), c.call("apply", newImage, oldImage))
	if err != nil || s.Matches || !strings.Contains(string(s.Actual), "conflict") {
		t.Errorf("people are shown %+v, %v", s, err)
	}
	k := c.connector(force)
	res, err := k.Execute(t.Context(), c.call("apply", newImage, oldImage))
	connectortest.Must(t, err)
	images := func() string { return string(c.web("spec", "template", "spec", "containers")) }
	if got := images(); !strings.Contains(got, "nginx:2") || !strings.Contains(got, "fluent:1") {
		t.Errorf("containers: %s", got)
	}
	undo := c.call(res.Reversal.Operation, res.Reversal.ProposedChange, res.Reversal.CurrentState)
	undo.IdempotencyKey = "act_2:1"
	if _, err := k.Execute(t.Context(), undo); err != nil || !strings.Contains(images(), "nginx:1") {
		t.Errorf("undone: %v, %s", err, images())
	}

	own := c.connector(nil) // an object that Gatehouse has created
	if _, err := own.Execute(t.Context(), c.create(settings)); err != nil {
		t.Fatal(err)
	}
	apply := c.create(`{"data":{"level":"info"}}`)
	apply.Operation, apply.CurrentState, apply.IdempotencyKey = "apply", `{"data":{"level":"debug"}}`, "act_3:1"
	if _, err := own.Execute(t.Context(), apply); err != nil {
		t.Error(err)
	}
	if data, _ := c.settings().Get("data"); data != `{"level":"info"}` {
		t.Errorf("data: %s", data)
	}
}

// TestForgotten: an apply removes a field that this manager set earlier and that the apply does not name.
// The dry run shows that, and nothing is written.
func TestForgotten(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	c.do("APPLY", c.deployments()+"/web", "gatehouse",
		`{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"web","annotations":{"team":"shop"}},`+
			`"spec":{"replicas":2}}`)
	k := c.connector(nil)
	_, err := k.Execute(t.Context(), c.call("apply", five, two))
	if detail := wantFailure(t, err, connector.Terminal, "not_as_approved"); !strings.Contains(detail,
		"annotations would be removed") &&
		!strings.Contains(detail, "team would be removed") {
		t.Errorf("%v", detail)
	}
	if c.effects() != 0 {
		t.Errorf("%d effects", c.effects())
	}
	// A field is removed on purpose by naming it with null.
	meant := gatehouse.JSON(`{"metadata":{"annotations":{"team":null}},"spec":{"replicas":5}}`)
	res, err := k.Execute(t.Context(), c.call("apply", meant, two))
	connectortest.Must(t, err)
	if got := c.web("metadata", "annotations"); strings.Contains(string(got), "team") || c.web("spec", "replicas") != "5" {
		t.Errorf("annotations %s, replicas %s", got, c.web("spec", "replicas"))
	}
	undo := c.call(res.Reversal.Operation, res.Reversal.ProposedChange, res.Reversal.CurrentState)
	if _, err := k.Execute(t.Context(), undo); err != nil ||
		!strings.Contains(string(c.web("metadata", "annotations")), `"team":"shop"`) {
		t.Errorf("undone: %v, %s", err, c.web("metadata", "annotations"))
	}
}

// TestAdded: the reversal of an apply removes the fields that it added.
func TestAdded(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	k := c.connector(nil)
	change := gatehouse.MustJSON(object{
		"metadata": object{"annotations": object{"note": "<b>\u202e"}}, "spec": object{"paused": true, "replicas": 2},
	})
	res, err := k.Execute(t.Context(), c.call("apply", change, two))
	connectortest.Must(t, err)
	undo := c.call(res.Reversal.Operation, res.Reversal.ProposedChange, res.Reversal.CurrentState)
	undo.IdempotencyKey = "act_2:1"
	connectortest.Must(t, k.Validate(undo))
	if _, err := k.Execute(t.Context(), undo); err != nil {
		t.Fatal(err)
	}
	if _, paused := c.web("spec").Get("paused"); paused || strings.Contains(string(c.web("metadata")), `"note"`) {
		t.Errorf("%s", c.web())
	}
}

// TestCreate: a name exists once, an annotation has the call's key, and the reversal deletes the
// object.
func TestCreate(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	k := c.connector(nil)
	if s, err := k.Check(t.Context(), c.create(settings)); err != nil || !s.Matches {
		t.Errorf("%+v, %v", s, err)
	}
	res, err := k.Execute(t.Context(), c.create(settings))
	connectortest.Must(t, err)
	other := c.create(settings)
	other.IdempotencyKey = "act_2:1"
	_, err = k.Execute(t.Context(), other)
	wantFailure(t, err, connector.Terminal, "already_exists")
	if s, err := k.Check(t.Context(), other); err != nil || s.Matches || s.Expected == s.Actual {
		t.Errorf("%+v, %v", s, err)
	}
	finding(t, k, other, connector.Inconclusive)
	undo := c.create("")
	undo.Operation, undo.Target = res.Reversal.Operation, res.Reversal.Target
	undo.CurrentState, undo.ProposedChange = res.Reversal.CurrentState, res.Reversal.ProposedChange
	removed, err := k.Execute(t.Context(), undo)
	if err != nil || c.settings() != "null" || c.effects() != 2 {
		t.Fatalf("%v, %s, %d effects", err, c.settings(), c.effects())
	}
	again := c.create(removed.Reversal.ProposedChange) // reverse the reversal, with the old manifest
	connectortest.Must(t, k.Validate(again))
	if _, err := k.Execute(t.Context(), again); err != nil || !strings.Contains(string(c.settings()), `"level":"debug"`) {
		t.Errorf("%v, %s", err, c.settings())
	}
}

// TestUndoOfCreate: the reversal of a create does not delete an object that somebody has changed since; a new
// annotation of a deployment does not count.
func TestUndoOfCreate(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	k := c.connector(nil)
	undo := func(call connector.Call, since func()) error {
		t.Helper()
		res, err := k.Execute(t.Context(), call)
		connectortest.Must(t, err)
		since()
		undo := connectortest.Call(res.Reversal.Operation, call.Target.EntityType, call.Target.EntityRef,
			res.Reversal.CurrentState, res.Reversal.ProposedChange)
		undo.Target, undo.IdempotencyKey = res.Reversal.Target, "act_2:1"
		connectortest.Must(t, k.Validate(undo))
		_, err = k.Execute(t.Context(), undo)
		return err
	}
	config := "/api/v1/namespaces/" + c.namespace + "/configmaps/settings"
	wantFailure(t, undo(c.create(settings), func() { c.do("MERGE", config, "kubectl", `{"data":{"added":"1"}}`) }),
		connector.Terminal, "target_changed")

	deployment := func(name string) connector.Call {
		labels := object{"app": "b"}
		call := c.call("create", gatehouse.MustJSON(object{"spec": object{
			"replicas": 1, "selector": object{"matchLabels": labels}, "template": object{
				"metadata": object{"labels": labels}, "spec": object{"containers": []object{{"name": "app", "image": "nginx:1"}}},
			},
		}}), "")
		call.Target.EntityRef = c.namespace + "/" + name
		call.IdempotencyKey = name
		return call
	}
	merge := func(name, change string) func() {
		return func() { c.do("MERGE", c.deployments()+"/"+name, "kubectl", change) }
	}
	wantFailure(t, undo(deployment("paused"), merge("paused", `{"spec":{"paused":true}}`)),
		connector.Terminal, "target_changed")
	connectortest.Must(t, undo(deployment("rolled"), merge("rolled", `{"metadata":{"annotations":{"revision":"1"}}}`)))
}

// TestCreateRace: two replicas create with one key, and one object results.
func TestCreateRace(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	c.behave(func() { c.pause = meet(t) })
	ids := make(chan string, 2)
	for range 2 {
		k := c.connector(nil)
		go func() {
			res, err := k.Execute(t.Context(), c.create(settings))
			if err != nil {
				t.Error(err)
			}
			ids <- res.ExternalID
		}()
	}
	if a, b := <-ids, <-ids; a != b || a == "" || c.effects() != 1 {
		t.Errorf("%q and %q, %d effects", a, b, c.effects())
	}
}

func TestOutcomes(t *testing.T) {
	t.Parallel()
	at := func(method string, dry bool, code int, reason string) func(*cluster) {
		return func(c *cluster) {
			c.fail = func(r *http.Request) (int, string) {
				if r.Method != method || dry != (r.URL.Query().Get("dryRun") != "") {
					return 0, ""
				}
				return code, reason
			}
		}
	}
	for name, test := range map[string]struct {
		set    func(*cluster)
		change gatehouse.JSON
		kind   connector.Kind
		code   string
	}{
		"an unknown field":      {nil, `{"spec":{"replicaz":5}}`, connector.Terminal, "refused"},
		"an invalid value":      {nil, `{"spec":{"replicas":-5}}`, connector.Terminal, "refused"},
		"no right":              {at("GET", false, 403, "Forbidden"), five, connector.Terminal, "forbidden"},
		"no right to write":     {at("PATCH", true, 403, "Forbidden"), five, connector.Terminal, "forbidden"},
		"a revoked token":       {at("GET", false, 401, "Unauthorized"), five, connector.Terminal, "unauthorized"},
		"too many":              {at("GET", false, 429, "TooManyRequests"), five, connector.NotSent, "http_429"},
		"too many at the write": {at("PATCH", false, 429, "TooManyRequests"), five, connector.Transient, "http_429"},
		"down":                  {at("GET", false, 503, "ServiceUnavailable"), five, connector.NotSent, "http_503"},
		"down at the dry run":   {at("PATCH", true, 500, "InternalError"), five, connector.NotSent, "http_500"},
		"down at the write":     {at("PATCH", false, 504, "Timeout"), five, connector.Ambiguous, "http_504"},
		"a proxy's 404":         {at("GET", false, 404, page), five, connector.Terminal, "http_404"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newCluster(t)
			if test.set != nil {
				test.set(c)
			}
			_, err := c.connector(nil).Execute(t.Context(), c.call("apply", test.change, two))
			wantFailure(t, err, test.kind, test.code)
			if c.effects() != 0 {
				t.Errorf("%d effects", c.effects())
			}
		})
	}
	lost := newCluster(t) // the 404 of a proxy does not prove a deletion
	at("GET", false, 404, page)(lost)
	if got, _, err := lost.connector(nil).ReadBack(t.Context(), lost.call("delete", "{}", two)); err == nil ||
		got != connector.Inconclusive {
		t.Errorf("read back after a proxy's 404: %v, %v", got, err)
	}
	c := newCluster(t) // the server normalises a value
	cpu := gatehouse.JSON(
		`{"spec":{"replicas":2,"template":{"spec":{"containers":[{"name":"app","resources":{"limits":{"cpu":"1000m"}}}]}}}}`)
	_, err := c.connector(nil).Execute(t.Context(), c.call("apply", cpu, two))
	if detail := wantFailure(t, err, connector.Terminal, "not_as_approved"); !strings.Contains(detail,
		`cpu is "1" instead of "1000m"`) {
		t.Errorf("%v", detail)
	}
	maps := c.call("scale", scaled, scale) // config maps cannot be scaled
	maps.Target = c.create(settings).Target
	_, err = c.connector(nil).Execute(t.Context(), maps)
	wantFailure(t, err, connector.Terminal, "target_changed")
	if c.effects() != 0 {
		t.Errorf("%d effects", c.effects())
	}
}

// TestDryRunFirst: an apply is preceded by a dry run of the same request.
func TestDryRunFirst(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	if _, err := c.connector(nil).Execute(t.Context(), c.call("apply", five, two)); err != nil {
		t.Fatal(err)
	}
	want := []string{"GET", "PATCH dry", "PATCH"}
	var got []string
	for _, q := range c.queries {
		method, _, _ := strings.Cut(q, " ")
		if strings.Contains(q, "dryRun=All") {
			method += " dry"
		}
		got = append(got, method)
	}
	if !slices.Equal(got, want) {
		t.Errorf("%v", c.queries)
	}
}

func TestValidate(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	k := c.connector(func(cfg *kubernetes.Config) {
		cfg.Resources["deployments.apps"] = kubernetes.Resource{
			Kind: "Deployment", Namespaces: []string{c.namespace},
			Fields:     connector.FieldLevels{"data": 5, "metadata": 1, "spec": 4}, // of a create, only data raises the floor
			Operations: map[string]kubernetes.Operation{"scale": {Floor: 2}},
		}
	})
	at := func(call connector.Call, of, ref string) connector.Call {
		call.Target.EntityType, call.Target.EntityRef = of, ref
		return call
	}
	apply := c.call("apply", five, two)
	connectortest.Invalid(t, k, map[string]connector.Call{
		"another resource":  at(apply, "pods", c.namespace+"/web"),
		"another namespace": at(apply, "deployments.apps", "kube-system/web"),
		"a path":            at(apply, "deployments.apps", c.namespace+"/../x"),
		"no namespace":      at(apply, "deployments.apps", "web"),
		"a subresource":     at(apply, "deployments.apps", c.namespace+"/web/status"), "blind": c.call("apply", five, ""),
		"a status": c.call("apply", `{"status":{}}`, two), "another name": c.call("apply", `{"metadata":{"name":"x"}}`, two),
		"the key":            c.call("apply", `{"metadata":{"annotations":{"gatehouse/key":"x"}}}`, two),
		"nothing":            c.call("apply", `{}`, two),
		"a finalizer":        c.call("apply", `{"metadata":{"finalizers":["x"]}}`, two),
		"half a replica":     c.call("scale", `{"replicas":0.5}`, scale),
		"no time":            c.call("restart", `{"restartedAt":"2026-13-24T10:00:00Z"}`, `{"restartedAt":null}`),
		"a restart":          at(c.call("restart", restart, `{"restartedAt":null}`), "configmaps", c.namespace+"/settings"),
		"a propagation":      c.call("delete", `{"propagation":"all"}`, two),
		"a state of nothing": c.call("create", settings, two),
	})
	namespace := at(c.call("delete", "{}", two), "namespaces", c.namespace)
	for name, test := range map[string]struct {
		call  connector.Call
		floor gatehouse.RiskLevel
	}{
		"labels": {c.call("apply", `{"metadata":{"labels":{"a":"b"}}}`, two), 1}, "spec": {apply, 4},
		"scale":  {c.call("scale", scaled, scale), 2},
		"delete": {c.call("delete", "{}", two), 4}, "a namespace": {namespace, 5}, "create": {c.create(settings), 4},
	} {
		if got := k.Floor(test.call); got != test.floor {
			t.Errorf("%s: floor %v", name, got)
		}
	}
	if l := k.List(); len(l) != 5 || len(l[3].EntityTypes) != 1 || len(k.Declarations()) != 5 {
		t.Errorf("%+v, %+v", l, k.Declarations())
	}
	if c.effects() != 0 {
		t.Error("something was done")
	}
}

// certificate makes a certificate for clients and the server, and its key.
func certificate(t testing.TB) (cert, key string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	connectortest.Must(t, err)
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "gate"},
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &private.PublicKey, private)
	connectortest.Must(t, err)
	secret, err := x509.MarshalPKCS8PrivateKey(private)
	connectortest.Must(t, err)
	encode := func(kind string, b []byte) string {
		return string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: b}))
	}
	return encode("CERTIFICATE", der), encode("PRIVATE KEY", secret)
}

func TestAuthentication(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	if err := c.connector(nil).Probe(t.Context()); err != nil {
		t.Error(err)
	}
	if c.real {
		t.Log("the recorder before the real server ends TLS, so client certificates are for the fake")
	} else {
		cert, key := certificate(t)
		cfg := c.config()
		cfg.Auth = kubernetes.Auth{Certificate: &connector.Secret{Secret: "cert"}, Key: &connector.Secret{Secret: "key"}}
		k, err := kubernetes.New(t.Context(), cfg, func(name string) (string, error) {
			return map[string]string{"cert": cert, "key": key}[name], nil
		})
		connectortest.Must(t, err)
		if err := k.(connector.Prober).Probe(t.Context()); err != nil {
			t.Errorf("with a certificate: %v", err)
		}
	}
	// The system does not trust the server's certificate.
	stranger := c.connector(func(cfg *kubernetes.Config) { cfg.CAFile = "" })
	_, err := stranger.Execute(t.Context(), c.call("apply", five, two))
	wantFailure(t, err, connector.NotSent, "unreachable")

	for name, resources := range map[string]map[string]kubernetes.Resource{
		"has no such resource":                     {"widgets.apps": {Kind: "Widget", Namespaces: []string{"shop"}}},
		`its kind is "Deploy`:                      {"deployments.apps": {Kind: "Widget", Namespaces: []string{"shop"}}},
		"namespaces are required for a namespaced": {"deployments.apps": {Kind: "Deployment"}},
	} {
		k := c.connector(func(cfg *kubernetes.Config) { cfg.Resources = resources })
		if err := k.Probe(t.Context()); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestConfig(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	connectortest.Refuses(t, kubernetes.New, c.config, secrets, map[string]func(*kubernetes.Config){
		"server: ":     func(c *kubernetes.Config) { c.Server = "http://127.0.0.1" },
		"ca_file: ":    func(c *kubernetes.Config) { c.CAFile = "fake_test.go" },
		"auth: needs":  func(c *kubernetes.Config) { c.Auth.Token = nil },
		"auth: cert":   func(c *kubernetes.Config) { c.Auth.Key = &connector.Secret{Secret: "TOKEN"} },
		"auth.token: ": func(c *kubernetes.Config) { c.Auth.Token.Secret = "OTHER" },
		"auth.certificate": func(c *kubernetes.Config) {
			s := c.Auth.Token
			c.Auth = kubernetes.Auth{Certificate: s, Key: s}
		},
		"field_manager: ": func(c *kubernetes.Config) { c.FieldManager = "A b" },
		"resources: at":   func(c *kubernetes.Config) { c.Resources = nil },
		"resources: \"":   func(c *kubernetes.Config) { c.Resources = map[string]kubernetes.Resource{"a/b": {}} },
		"resources.secrets": func(c *kubernetes.Config) {
			c.Resources = map[string]kubernetes.Resource{"secrets": {Kind: "Secret"}}
		},
		"resources.configmaps.kind": func(c *kubernetes.Config) { c.Resources["configmaps"] = kubernetes.Resource{} },
		"resources.configmaps.version": func(c *kubernetes.Config) {
			c.Resources["configmaps"] = kubernetes.Resource{Kind: "X", Version: "1"}
		},
		"resources.configmaps.namespaces": func(c *kubernetes.Config) {
			c.Resources["configmaps"] = kubernetes.Resource{Kind: "X", Namespaces: []string{"../x"}}
		},
		"resources.configmaps.operations.exec": func(c *kubernetes.Config) {
			c.Resources["configmaps"] = kubernetes.Resource{Kind: "X", Operations: map[string]kubernetes.Operation{"exec": {}}}
		},
	})
	connectortest.Fingerprint(t, kubernetes.New, c.config, secrets,
		map[string]func(*kubernetes.Config){"force": force},
		map[string]func(*kubernetes.Config){"levels": func(cfg *kubernetes.Config) {
			r := cfg.Resources["configmaps"]
			r.Fields = connector.FieldLevels{"data": 1}
			cfg.Resources["configmaps"] = r
		}})
}
