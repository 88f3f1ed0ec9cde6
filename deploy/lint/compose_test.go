package lint

import (
	"os"
	"strings"
	"testing"

	"github.com/compose-spec/compose-go/v2/cli"
	"github.com/compose-spec/compose-go/v2/types"
	appsv1 "k8s.io/api/apps/v1"
)

const composeFile = "../compose/compose.yaml"

// compose reads the file as `docker compose` does: with the specification's schema and with
// variables.
func compose(t *testing.T, env ...string) (*types.Project, error) {
	t.Helper()
	options, err := cli.NewProjectOptions([]string{composeFile}, cli.WithEnv(env))
	if err != nil {
		t.Fatal(err)
	}
	return options.LoadProject(t.Context())
}

func TestCompose(t *testing.T) {
	project, err := compose(t, "POSTGRES_PASSWORD=one", "GATEHOUSE_PASSWORD=two")
	if err != nil {
		t.Fatal(err)
	}
	gate, postgres := project.Services["gatehouse"], project.Services["postgres"]
	if got := *gate.Environment["GATEHOUSE_DATABASE_URL"]; got != "postgres://gatehouse:two@postgres/gatehouse" {
		t.Errorf("the database is %s", got)
	}
	if gate.DependsOn["postgres"].Condition != types.ServiceConditionHealthy || postgres.HealthCheck == nil {
		t.Error("it starts before its database")
	}
	if p := gate.Ports[0]; p.HostIP != "127.0.0.1" || p.Published != "8080" || p.Target != 8080 {
		t.Errorf("it is published as %+v", p)
	}
	if len(postgres.Ports) > 0 {
		t.Error("the database is published")
	}
	if !gate.ReadOnly || strings.Join(gate.CapDrop, "") != "ALL" || gate.MemLimit == 0 {
		t.Error("the container has more than it needs")
	}
	if want := read(t, "deployment.yaml").(*appsv1.Deployment).Spec.Template.Spec.Containers[0].Image; gate.Image != want {
		t.Errorf("the image is %s, in Kubernetes %s", gate.Image, want)
	}
	for name, config := range project.Configs {
		if _, err := os.Stat(config.File); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestComposeNeedsPasswords: a missing password is an error, and not an empty password.
func TestComposeNeedsPasswords(t *testing.T) {
	for _, env := range []string{"POSTGRES_PASSWORD=one", "GATEHOUSE_PASSWORD=two"} {
		if _, err := compose(t, env); err == nil || !strings.Contains(err.Error(), "PASSWORD") {
			t.Errorf("only %s: %v", env, err)
		}
	}
}
