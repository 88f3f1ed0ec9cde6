// Package lint checks the Kubernetes manifests as the API server does. It is a separate module, so
// that the product does not depend on Kubernetes' types.
package lint

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/yaml"
)

const dir = "../kubernetes"

// kinds has an empty object of each kind that the manifests use.
var kinds = map[string]func() any{
	"v1/Namespace":                      func() any { return new(corev1.Namespace) },
	"v1/ServiceAccount":                 func() any { return new(corev1.ServiceAccount) },
	"v1/ConfigMap":                      func() any { return new(corev1.ConfigMap) },
	"v1/Service":                        func() any { return new(corev1.Service) },
	"v1/Secret":                         func() any { return new(corev1.Secret) },
	"batch/v1/Job":                      func() any { return new(batchv1.Job) },
	"rbac.authorization.k8s.io/v1/Role": func() any { return new(rbacv1.Role) },
	"rbac.authorization.k8s.io/v1/RoleBinding": func() any { return new(rbacv1.RoleBinding) },
	"apps/v1/Deployment":                       func() any { return new(appsv1.Deployment) },
	"policy/v1/PodDisruptionBudget":            func() any { return new(policyv1.PodDisruptionBudget) },
	"networking.k8s.io/v1/NetworkPolicy":       func() any { return new(networkingv1.NetworkPolicy) },
}

// read decodes a manifest strictly: unknown and repeated fields are errors.
func read(t *testing.T, name string) any {
	t.Helper()
	src, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		t.Fatal(err)
	}
	var head struct{ APIVersion, Kind string }
	if err := yaml.Unmarshal(src, &head); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	make, ok := kinds[head.APIVersion+"/"+head.Kind]
	if !ok {
		t.Fatalf("%s: no kind %s %s", name, head.APIVersion, head.Kind)
	}
	object := make()
	if err := yaml.UnmarshalStrict(src, object); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	if bytes.Contains(src, []byte("\n---")) {
		t.Fatalf("%s: one object a file", name)
	}
	return object
}

// resources lists the files that the kustomization applies.
func resources(t *testing.T) []string {
	t.Helper()
	src, err := os.ReadFile(filepath.Join(dir, "kustomization.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var k struct {
		APIVersion, Kind, Namespace string
		Resources                   []string
		SortOptions                 struct{ Order string }
		GeneratorOptions            struct{ DisableNameSuffixHash bool }
		SecretGenerator             []struct {
			Name string
			Envs []string
		}
	}
	if err := yaml.UnmarshalStrict(src, &k); err != nil {
		t.Fatal(err)
	}
	return k.Resources
}

func TestManifestsAreStrict(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(dir, "*.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	listed := resources(t)
	if len(files) != len(listed)+1 {
		t.Errorf("%d files, %d of them applied", len(files)-1, len(listed))
	}
	for _, name := range listed {
		read(t, name)
	}
}

// TestDeploymentIsRestricted checks the requirements of a restricted namespace, and those of a
// rolling restart without lost requests.
func TestDeploymentIsRestricted(t *testing.T) {
	d := read(t, "deployment.yaml").(*appsv1.Deployment)
	pod := d.Spec.Template.Spec
	sc := pod.SecurityContext
	if sc == nil || sc.RunAsNonRoot == nil || !*sc.RunAsNonRoot || sc.SeccompProfile == nil ||
		sc.SeccompProfile.Type != corev1.SeccompProfileTypeRuntimeDefault {
		t.Error("the pod is not restricted")
	}
	if *d.Spec.Replicas < 2 || d.Spec.Strategy.RollingUpdate.MaxUnavailable.IntValue() != 0 {
		t.Error("a rolling restart would leave nobody to serve")
	}
	if *pod.TerminationGracePeriodSeconds < 60 {
		t.Error("a drain is cut short")
	}
	for key, value := range d.Spec.Selector.MatchLabels {
		if d.Spec.Template.Labels[key] != value {
			t.Errorf("the selector does not find its pods by %s", key)
		}
	}
	c := pod.Containers[0]
	if s := c.SecurityContext; s == nil || *s.AllowPrivilegeEscalation || !*s.ReadOnlyRootFilesystem ||
		!slices.Contains(s.Capabilities.Drop, "ALL") {
		t.Error("the container is not restricted")
	}
	if c.ReadinessProbe.HTTPGet.Path != "/readyz" || c.LivenessProbe.HTTPGet.Path != "/healthz" {
		t.Error("readiness asks for the store, liveness does not")
	}
	if c.Resources.Limits.Memory().IsZero() || c.Resources.Requests.Cpu().IsZero() {
		t.Error("no resources")
	}
}

func TestServiceFindsThePods(t *testing.T) {
	d := read(t, "deployment.yaml").(*appsv1.Deployment)
	s := read(t, "service.yaml").(*corev1.Service)
	b := read(t, "poddisruptionbudget.yaml").(*policyv1.PodDisruptionBudget)
	n := read(t, "networkpolicy.yaml").(*networkingv1.NetworkPolicy)
	for _, selector := range []map[string]string{s.Spec.Selector, b.Spec.Selector.MatchLabels,
		n.Spec.PodSelector.MatchLabels} {
		for key, value := range selector {
			if d.Spec.Template.Labels[key] != value {
				t.Errorf("a selector does not find the pods by %s", key)
			}
		}
	}
	if s.Spec.Ports[0].TargetPort.String() != d.Spec.Template.Spec.Containers[0].Ports[0].Name {
		t.Error("the service's port is not the container's")
	}
}
