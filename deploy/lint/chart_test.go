package lint

import (
	"encoding/base64"
	"encoding/json"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
	helmlint "helm.sh/helm/v3/pkg/lint"
	"helm.sh/helm/v3/pkg/lint/support"
	"sigs.k8s.io/yaml"
)

const chartDir = "../helm/gatehouse"

// render is the set of objects that `helm install` sends, by kind and name.
func render(values map[string]any, release string) (map[string][]byte, error) {
	chart, err := loader.Load(chartDir)
	if err != nil {
		return nil, err
	}
	options := chartutil.ReleaseOptions{Name: release, Namespace: "gatehouse", Revision: 1, IsInstall: true}
	all, err := chartutil.ToRenderValues(chart, values, options, chartutil.DefaultCapabilities)
	if err != nil {
		return nil, err
	}
	files, err := engine.Render(chart, all)
	if err != nil {
		return nil, err
	}
	objects := make(map[string][]byte)
	for name, text := range files {
		if filepath.Ext(name) != ".yaml" || strings.TrimSpace(text) == "" {
			continue
		}
		var head struct {
			Kind     string
			Metadata struct{ Name string }
		}
		if err := yaml.Unmarshal([]byte(text), &head); err != nil {
			return nil, err
		}
		objects[head.Kind+"/"+head.Metadata.Name] = []byte(text)
	}
	return objects, nil
}

var databaseValues = map[string]any{"database": map[string]any{
	"url": "postgres://gatehouse:CHANGE-ME@db/gatehouse?sslmode=require"}}

// allValues sets the values that are empty by default and that an existing secret allows, and some others.
var allValues = map[string]any{
	"image":         map[string]any{"tag": "1.2.3", "pullSecrets": []any{map[string]any{"name": "registry"}}},
	"replicas":      1,
	"database":      map[string]any{"existingSecret": "mine"},
	"config":        map[string]any{"connectors": map[string]any{}, "dispatch": map[string]any{"hold": "5s"}},
	"extraArgs":     []any{"--nats-url", "nats://nats:4222"},
	"service":       map[string]any{"port": 8080},
	"affinity":      map[string]any{"nodeAffinity": map[string]any{}},
	"tolerations":   []any{map[string]any{"key": "a", "operator": "Exists"}},
	"nodeSelector":  map[string]any{"kubernetes.io/os": "linux"},
	"networkPolicy": map[string]any{"egressPorts": []any{1521}},
}

func TestChartLints(t *testing.T) {
	for _, values := range []map[string]any{nil, databaseValues, allValues} {
		for _, m := range helmlint.All(chartDir, values, "gatehouse", true).Messages {
			if m.Severity > support.InfoSev {
				t.Error(m)
			}
		}
	}
}

// TestChartFitsTheSchemas: an API server accepts the objects that the chart renders.
func TestChartFitsTheSchemas(t *testing.T) {
	schema := schemas(t)
	for _, values := range []map[string]any{databaseValues, allValues} {
		objects, err := render(values, "gate")
		if err != nil {
			t.Fatal(err)
		}
		for name, src := range objects {
			var head struct{ APIVersion, Kind string }
			if err := yaml.Unmarshal(src, &head); err != nil {
				t.Fatal(err)
			}
			empty, ok := kinds[head.APIVersion+"/"+head.Kind]
			if !ok {
				t.Fatalf("no kind %s %s", head.APIVersion, head.Kind)
			}
			if err := yaml.UnmarshalStrict(src, empty()); err != nil {
				t.Errorf("%s: %v", name, err)
			}
			if err := valid(schema(head.APIVersion, head.Kind), src); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
}

// TestChartIsTheKustomization: with only the database's address set, the chart renders the same
// objects as kustomize, except for the namespace.
func TestChartIsTheKustomization(t *testing.T) {
	fromChart, err := render(databaseValues, "gatehouse")
	if err != nil {
		t.Fatal(err)
	}
	chart, kustomize := make(map[string]any), make(map[string]any)
	for name, src := range fromChart {
		chart[strings.TrimSuffix(name, "-1")] = plain(t, src)
	}
	for _, src := range rendered(t) {
		object := plain(t, src)
		if kind := object["kind"].(string); kind != "Namespace" {
			kustomize[kind+"/"+object["metadata"].(map[string]any)["name"].(string)] = object
		}
	}
	if diff := cmp.Diff(kustomize, chart); diff != "" {
		t.Errorf("(-kustomize +helm)\n%s", diff)
	}
	if len(chart) < 12 {
		t.Errorf("only %v", slices.Sorted(maps.Keys(chart)))
	}
}

// plain parses an object without the parts that only Helm writes: the object's labels, the release
// in selectors, the configuration's checksum, the job's revision. It decodes a Secret's values, because
// kustomize breaks the lines of a long one.
func plain(t *testing.T, src []byte) map[string]any {
	t.Helper()
	var object map[string]any
	if err := yaml.Unmarshal(src, &object); err != nil {
		t.Fatal(err)
	}
	meta := object["metadata"].(map[string]any)
	delete(meta, "labels")
	if object["kind"] == "Job" {
		meta["name"] = strings.TrimSuffix(meta["name"].(string), "-1")
	}
	if values, ok := object["data"].(map[string]any); ok && object["kind"] == "Secret" {
		for name, value := range values {
			decoded, err := base64.StdEncoding.DecodeString(value.(string))
			if err != nil {
				t.Fatal(err)
			}
			values[name] = string(decoded)
		}
	}
	var strip func(v any)
	strip = func(v any) {
		switch v := v.(type) {
		case map[string]any:
			delete(v, "app.kubernetes.io/instance")
			delete(v, "checksum/config")
			for _, child := range v {
				strip(child)
			}
		case []any:
			for _, child := range v {
				strip(child)
			}
		}
	}
	strip(object)
	return object
}

// TestChartTakesTheValues: each value reaches its place in the objects.
func TestChartTakesTheValues(t *testing.T) {
	objects, err := render(allValues, "gate")
	if err != nil {
		t.Fatal(err)
	}
	deployment, job := string(objects["Deployment/gate"]), string(objects["Job/gate-init-1"])
	for _, text := range []string{deployment, job} {
		for _, want := range []string{"gatehouse:1.2.3", "name: mine", "name: registry", "kubernetes.io/os: linux",
			"operator: Exists"} {
			if !strings.Contains(text, want) {
				t.Errorf("no %q in\n%s", want, text)
			}
		}
	}
	if !strings.Contains(deployment, `"nats://nats:4222"`) ||
		!strings.Contains(string(objects["ConfigMap/gate"]), "hold: 5s") {
		t.Error("an argument or the configuration is lost")
	}
	if !strings.Contains(string(objects["NetworkPolicy/gate"]), "port: 1521") ||
		!strings.Contains(string(objects["Service/gate"]), "port: 8080") {
		t.Error("a port is lost")
	}
	if objects["Secret/gate"] != nil || objects["PodDisruptionBudget/gate"] != nil {
		t.Error("a second secret, or a budget that lets no node be drained")
	}
	with := map[string]any{"environment": map[string]any{"CRM_TOKEN": "s3cret"}, "database": databaseValues["database"]}
	if objects, err = render(with, "gate"); err != nil {
		t.Fatal(err)
	}
	if want := base64.StdEncoding.EncodeToString([]byte("s3cret")); !strings.Contains(string(objects["Secret/gate"]),
		"CRM_TOKEN: \""+want) {
		t.Errorf("no variable in\n%s", objects["Secret/gate"])
	}
}

// TestChartRefuses: the chart refuses values that would have no effect, or less than they seem to have.
func TestChartRefuses(t *testing.T) {
	for name, c := range map[string]struct{ values, want string }{
		"no database":       {`{}`, "database.url"},
		"a misspelled key":  {`{"database": {"url": "u"}, "replicaCount": 3}`, "replicaCount"},
		"a misspelled part": {`{"database": {"urls": "u"}}`, "urls"},
		"two secrets":       {`{"database": {"url": "u", "existingSecret": "s"}}`, "database.existingSecret"},
		"a lost variable":   {`{"database": {"existingSecret": "s"}, "environment": {"A": "b"}}`, "environment"},
		"two addresses": {`{"database": {"url": "u"}, "environment": {"GATEHOUSE_DATABASE_URL": "b"}}`,
			"database.url"},
		"no replica": {`{"database": {"url": "u"}, "replicas": 0}`, "replicas"},
	} {
		var values map[string]any
		if err := json.Unmarshal([]byte(c.values), &values); err != nil {
			t.Fatal(err)
		}
		if _, err := render(values, "gate"); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
