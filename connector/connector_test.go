package connector_test

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"go.yaml.in/yaml/v4"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/connector"
	"github.com/gatehouse-dev/gatehouse/connector/connectortest"
	httpconn "github.com/gatehouse-dev/gatehouse/connector/http"
	sqlconn "github.com/gatehouse-dev/gatehouse/connector/sql"
	workerconn "github.com/gatehouse-dev/gatehouse/connector/worker"
)

func TestFlags(t *testing.T) {
	t.Parallel()
	not := connectortest.Not("it writes files itself: no network, no credentials", connectortest.Faults...)
	delete(not, connectortest.HostileReference)
	delete(not, connectortest.HostileText)
	connectortest.Run(t, connectortest.Harness{Skip: not, New: func(t *testing.T) *connectortest.Fixture {
		flags := &Flags{dir: t.TempDir()}
		path := filepath.Join(flags.dir, "dark-mode.json")
		if err := os.WriteFile(path, []byte(`{"version":3,"on":false}`), 0o600); err != nil {
			t.Fatal(err)
		}
		read := func(t *testing.T) flag {
			var f flag
			b, err := os.ReadFile(path)
			if err == nil {
				err = json.Unmarshal(b, &f)
			}
			if err != nil {
				t.Fatal(err)
			}
			return f
		}
		disturbed := 0
		return &connectortest.Fixture{
			Connector: flags,
			Call: connector.Call{
				Tenant: "default", ActionID: "act_1", IdempotencyKey: "act_1:1", Digest: "sha256:1", Attempt: 1,
				Operation:      "switch",
				Target:         gatehouse.Target{EntityType: "flag", EntityRef: "dark-mode", Version: "3"},
				ProposedChange: `{"on":true}`,
			},
			Disturb: func(t *testing.T) {
				disturbed++
				f := read(t)
				f.Version++
				b, err := json.Marshal(f)
				if err == nil {
					err = os.WriteFile(path, b, 0o600)
				}
				if err != nil {
					t.Fatal(err)
				}
			},
			Read:    func(t *testing.T) gatehouse.JSON { return gatehouse.MustJSON(read(t).On) },
			Effects: func(t *testing.T) int { return read(t).Version - 3 - disturbed },
		}
	}})
}

// configurations returns the blocks of YAML in docs/connectors.md.
func configurations(t *testing.T) []string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("..", "docs", "connectors.md"))
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, m := range regexp.MustCompile("(?ms)^```yaml\n(.*?)^```$").FindAllSubmatch(b, -1) {
		found = append(found, string(m[1]))
	}
	if len(found) == 0 {
		t.Fatal("docs/connectors.md has no configuration")
	}
	return found
}

// TestDocumentedConfigurations builds a connector from every configuration entry in
// the documentation.
func TestDocumentedConfigurations(t *testing.T) {
	t.Parallel()
	count := map[string]int{}
	for _, block := range configurations(t) {
		var file struct {
			Secrets    map[string]string    `yaml:"secrets"`
			Connectors map[string]yaml.Node `yaml:"connectors"`
		}
		if err := yaml.Load([]byte(block), &file, yaml.WithKnownFields()); err != nil {
			t.Errorf("%v in\n%s", err, block)
			continue
		}
		if len(file.Connectors) == 0 {
			t.Errorf("no connector in\n%s", block)
		}
		secrets := func(name string) (string, error) { return "value-of-" + name, nil }
		for name, node := range file.Connectors {
			var head struct {
				Type string `yaml:"type"`
			}
			if err := node.Load(&head); err != nil {
				t.Fatal(err)
			}
			var err error
			switch head.Type {
			case "sql":
				var cfg sqlconn.Config
				if err = node.Load(&cfg, yaml.WithKnownFields()); err == nil {
					_, err = sqlconn.New(t.Context(), cfg, secrets)
				}
			case "http":
				var cfg httpconn.Config
				if err = node.Load(&cfg, yaml.WithKnownFields()); err == nil {
					_, err = httpconn.New(t.Context(), cfg, secrets)
				}
			case "worker":
				var cfg workerconn.Config
				if err = node.Load(&cfg, yaml.WithKnownFields()); err == nil {
					_, err = workerconn.New(cfg)
				}
			default:
				t.Errorf("%s has type %q", name, head.Type)
			}
			if err != nil {
				t.Errorf("%s: %v in\n%s", name, err, block)
			}
			count[head.Type]++
		}
	}
	if count["sql"] < 2 || count["http"] < 4 || count["worker"] < 1 {
		t.Errorf("the documentation shows only %v", count)
	}
}

func TestErrors(t *testing.T) {
	t.Parallel()
	for kind, want := range map[connector.Kind]string{
		connector.Ambiguous: "ambiguous", connector.NotSent: "not_sent", connector.Transient: "transient",
		connector.Terminal: "terminal",
	} {
		e := &connector.Error{Kind: kind, Code: "http_500", Detail: "the target answered 500", Err: os.ErrDeadlineExceeded}
		if got := e.Error(); got != want+": http_500: the target answered 500" || !errors.Is(e, os.ErrDeadlineExceeded) {
			t.Errorf("%q", got)
		}
	}
}
