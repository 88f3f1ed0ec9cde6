package serve

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/gatehouse-dev/gatehouse/internal/config"
)

// TestLeftOpen: exactly the declarations that the first policy allows without approval are logged.
func TestLeftOpen(t *testing.T) {
	t.Parallel()
	const head = `
secrets: {TOKEN: hidden-value}
connectors:
  shop:
    type: sql
    dsn: "sqlite:SHOP"
    tenants: [default, acme]
    entities:
      item: {table: items, key: sku, fields: {note: 1, description: 2, price: 3}}
      tag: {table: tags, key: id, operations: {insert: {floor: 1}, delete: {floor: 3}}}
      plain: {table: plain, key: id}
      memo: {table: memos, key: id, fields: {text: 2}, operations: {update: {floor: 1}}}
  crm:
    type: http
    base_url: https://crm.example
    operations:
      label: {method: POST, path: "/{entity_type}/{entity_ref}/labels", floor: 2}
      update: {method: PATCH, path: "/{entity_type}/{entity_ref}"}
  erp:
    type: worker
    operations: {print: {floor: 1}, post: {}}
  tracker:
    type: jira
    site: https://jira.example
    email: bot@jira.example
    token: {secret: TOKEN}
    projects:
      AA: {fields: {labels: 1}}
      BB: {operations: {update: {floor: 1}}}
      CC: {operations: {update: {floor: 2}, comment: {floor: 1}}}
`
	for name, c := range map[string]struct {
		policy string
		want   []string
	}{
		"the default": {"", []string{
			"connector crm: label of any entity type (L2): the policy allows it without a person in tenant default, for " +
				"instance as classification",
			"connector erp: print (L1): the policy allows it without a person in tenant default, for instance as classification",
			"connector shop: update of item: the policy allows changes of description (L2), note (L1) without a person in " +
				"tenant acme, for instance as classification",
			"connector shop: update of memo (L1): the policy allows it, and changes of text (L2), without a person in tenant " +
				"acme, for instance as classification",
			"connector shop: insert of tag (L1): the policy allows it without a person in tenant acme, for instance as " +
				"classification",
			"connector shop: update of item: the policy allows changes of description (L2), note (L1) without a person in " +
				"tenant default, for instance as classification",
			"connector shop: update of memo (L1): the policy allows it, and changes of text (L2), without a person in tenant " +
				"default, for instance as classification",
			"connector shop: insert of tag (L1): the policy allows it without a person in tenant default, for instance as " +
				"classification",
			"connector tracker: update of issue (L2): the policy allows it, and changes of labels (L1), without a person in " +
				"tenant default, for instance as classification",
			"connector tracker: comment of issue (L1): the policy allows it without a person in tenant default, for instance " +
				"as classification",
		}},
		"what a bot notes in the shop": {
			"version: 1\nrisk: {note: 1}\nrules: [{id: a, when: 'risk <= 1 && action.connector == \"shop\" && proposer.name " +
				"== \"bot\"', then: allow}]\n", []string{
				"connector shop: update of item: the policy can allow changes of note (L1) without a person in tenant acme, for " +
					"instance as note",
				"connector shop: update of memo (L1): the policy can allow it without a person in tenant acme, for instance as " +
					"note",
				"connector shop: insert of tag (L1): the policy can allow it without a person in tenant acme, for instance as note",
				"connector shop: update of item: the policy can allow changes of note (L1) without a person in tenant default, " +
					"for instance as note",
				"connector shop: update of memo (L1): the policy can allow it without a person in tenant default, for instance " +
					"as note",
				"connector shop: insert of tag (L1): the policy can allow it without a person in tenant default, for instance as " +
					"note",
			},
		},
		"a person for everything": {"version: 1\nrisk: {note: 1}\n", nil},
	} {
		dir := t.TempDir()
		src := strings.Replace(head, "SHOP", filepath.Join(dir, "shop.db"), 1)
		if c.policy != "" {
			must(t, os.WriteFile(filepath.Join(dir, "policy.yaml"), []byte(c.policy), 0o600))
			src += "policy: {file: policy.yaml}\n"
		}
		cfg, err := config.Parse(filepath.Join(dir, "gatehouse.yaml"), []byte(src))
		must(t, err)
		got, err := ungatedByConfig(t.Context(), cfg, nil)
		if err != nil || !slices.Equal(got, c.want) {
			t.Errorf("%s: %v\n%s", name, err, strings.Join(got, "\n"))
		}
	}
}
