package lint

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/yaml"
)

// apiServer is the release whose published schemas check the manifests.
const apiServer = "k8s.io/kubernetes@v1.36.0"

// rendered is the list of objects that `kubectl apply -k` sends, in order.
func rendered(t *testing.T) [][]byte {
	t.Helper()
	made, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), dir)
	if err != nil {
		t.Fatal(err)
	}
	out, err := made.AsYaml()
	if err != nil {
		t.Fatal(err)
	}
	return bytes.Split(out, []byte("\n---\n"))
}

// schemas compiles the OpenAPI document of a group and version, as this release's API server serves
// it.
func schemas(t *testing.T) func(apiVersion, kind string) *jsonschema.Schema {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "go", "mod", "download", "-json", apiServer).Output()
	var module struct{ Dir string }
	if err != nil || json.Unmarshal(out, &module) != nil {
		t.Fatalf("%s: %v\n%s", apiServer, err, out)
	}
	compiler := jsonschema.NewCompiler()
	loaded := make(map[string][]string)
	return func(apiVersion, kind string) *jsonschema.Schema {
		group, version, ok := strings.Cut(apiVersion, "/")
		file, address := "apis__"+group+"__"+version, group
		if !ok {
			file, version, address = "api__"+group, group, ""
		}
		if loaded[file] == nil {
			src, err := os.ReadFile(filepath.Join(module.Dir, "api", "openapi-spec", "v3", file+"_openapi.json"))
			if err != nil {
				t.Fatal(err)
			}
			doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(src))
			if err != nil {
				t.Fatal(err)
			}
			if err := compiler.AddResource(file+".json", doc); err != nil {
				t.Fatal(err)
			}
			for name, one := range doc.(map[string]any)["components"].(map[string]any)["schemas"].(map[string]any) {
				kinds, _ := one.(map[string]any)["x-kubernetes-group-version-kind"].([]any)
				for _, k := range kinds {
					of := k.(map[string]any)
					if of["group"] == address && of["version"] == version {
						loaded[file] = append(loaded[file], of["kind"].(string)+" "+name)
					}
				}
			}
		}
		for _, known := range loaded[file] {
			if name, ok := strings.CutPrefix(known, kind+" "); ok {
				s, err := compiler.Compile(file + ".json#/components/schemas/" + name)
				if err != nil {
					t.Fatal(err)
				}
				return s
			}
		}
		t.Fatalf("the API server has no %s %s", apiVersion, kind)
		return nil
	}
}

// TestAppliesInOneGo: the objects that kustomize renders match the API server's schemas, the
// namespace comes first, and every referenced object exists.
func TestAppliesInOneGo(t *testing.T) {
	schema := schemas(t)
	there := map[string]bool{}
	for i, src := range rendered(t) {
		var head struct {
			APIVersion, Kind string
			Metadata         struct{ Name, Namespace string }
		}
		if err := yaml.Unmarshal(src, &head); err != nil {
			t.Fatal(err)
		}
		there[head.Kind+"/"+head.Metadata.Name] = true
		switch {
		case i == 0 && head.Kind != "Namespace":
			t.Errorf("%s comes before the namespace", head.Kind)
		case head.Kind != "Namespace" && head.Metadata.Namespace != "gatehouse":
			t.Errorf("%s %s is in no namespace", head.Kind, head.Metadata.Name)
		}
		make, ok := kinds[head.APIVersion+"/"+head.Kind]
		if !ok {
			t.Fatalf("no kind %s %s", head.APIVersion, head.Kind)
		}
		if err := yaml.UnmarshalStrict(src, make()); err != nil {
			t.Errorf("%s %s: %v", head.Kind, head.Metadata.Name, err)
		}
		if err := valid(schema(head.APIVersion, head.Kind), src); err != nil {
			t.Errorf("%s %s: %v", head.Kind, head.Metadata.Name, err)
		}
	}
	for _, want := range []string{"Secret/gatehouse", "ConfigMap/gatehouse", "ServiceAccount/gatehouse",
		"ServiceAccount/gatehouse-init", "Role/gatehouse-init", "Job/gatehouse-init"} {
		if !there[want] {
			t.Errorf("there is no %s", want)
		}
	}
}

// TestSchemasRefuse: the schemas really refuse invalid objects.
func TestSchemasRefuse(t *testing.T) {
	schema := schemas(t)
	if valid(schema("apps/v1", "Deployment"),
		[]byte(`{"apiVersion": "apps/v1", "kind": "Deployment", "spec": {"replicas": "two"}}`)) == nil {
		t.Error("a number may be a word")
	}
	if valid(schema("batch/v1", "Job"), []byte(`{"apiVersion": "batch/v1", "kind": "Job", "spec": {}}`)) == nil {
		t.Error("a job needs no template")
	}
}

func valid(s *jsonschema.Schema, src []byte) error {
	text, err := yaml.YAMLToJSON(src)
	if err != nil {
		return err
	}
	object, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		return err
	}
	return s.Validate(object)
}

// TestInitJobHandsOver: the job may write its secret. The replicas wait for an administrator, because
// the key of one that a replica created would be lost with its pod.
func TestInitJobHandsOver(t *testing.T) {
	job := read(t, "initjob.yaml").(*batchv1.Job)
	role := read(t, "initrole.yaml").(*rbacv1.Role)
	args := strings.Join(job.Spec.Template.Spec.Containers[0].Args, " ")
	rights := []rbacv1.PolicyRule{ // a right to create cannot name what it creates
		{APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{"create"}},
		{APIGroups: []string{""}, Resources: []string{"secrets"}, ResourceNames: []string{"gatehouse-admin"},
			Verbs: []string{"get", "update"}},
	}
	if !strings.Contains(args, "--kubernetes-secret gatehouse-admin") || !reflect.DeepEqual(role.Rules, rights) {
		t.Errorf("the job writes %s, and has the rights %+v", args, role.Rules)
	}
	if job.Spec.Template.Spec.ServiceAccountName != role.Name {
		t.Error("the job lacks the rights of its role")
	}
	if sc := job.Spec.Template.Spec.SecurityContext; !*sc.RunAsNonRoot ||
		sc.SeccompProfile.Type != corev1.SeccompProfileTypeRuntimeDefault {
		t.Error("the pod is not restricted")
	}
	if !strings.Contains(string(source(t, "deployment.yaml")), "--await-administrator") {
		t.Error("a replica would make an administrator of its own")
	}
}

func source(t *testing.T, name string) []byte {
	t.Helper()
	src, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		t.Fatal(err)
	}
	return src
}
