package policy_test

import (
	"strings"
	"testing"

	"github.com/gatehouse-dev/gatehouse/internal/policy"
)

// TestRulesThatNoCaseReaches expects each remark, and none on rules that are
// reached.
func TestRulesThatNoCaseReaches(t *testing.T) {
	t.Parallel()
	const denies = "rules:\n  - {id: no, when: 'action.connector == \"erp\"', then: deny}\n"
	for name, c := range map[string]struct{ source, want string }{
		"false": {"rules: [{id: r, when: 'false', then: deny}]", "its condition is false"},
		"no level": {"rules: [{id: r, when: 'risk > 5', then: deny}]",
			"exclude every level"},
		"bounds that do not meet": {"rules: [{id: r, when: 'risk >= 4 && risk < 4', then: deny}]",
			"exclude every level"},
		"two names of one": {"rules: [{id: r, when: 'action.type == \"a\" && action.type == \"b\"', then: deny}]",
			"cannot be a and b"},
		"four names of one, always the same two": {
			"rules: [{id: r, when: 'tenant == \"d\" && tenant == \"b\" && tenant == \"c\" && tenant == \"a\"', then: deny}]",
			"tenant cannot be a and b"},
		"all is denied": {"rules: [{id: no, when: 'true', then: deny}, {id: r, when: 'risk <= 2', then: allow}]",
			"rule no denies every action that this rule matches"},
		"denied with more": {denies + "  - {id: r, when: 'risk <= 2 && action.connector == \"erp\"', then: allow}",
			"rule no denies"},
		"denied elsewhere only": {denies + "  - {id: r, when: 'action.connector == \"crm\"', then: needs_approval}", ""},
		"denied in part":        {denies + "  - {id: r, when: 'risk <= 2', then: allow}", ""},
		"a level that there is": {"rules: [{id: r, when: 'risk >= 4 && risk <= 4', then: deny}]", ""},
		"either name": {"rules: [{id: r, when: 'action.type == \"a\" || action.type == \"b\"', then: deny}]",
			""},
		"not reached by the tests": {
			"rules: [{id: r, when: 'risk >= 4', then: deny}]\ntests: [{name: t, action: {action_type: x}, expect: {outcome: " +
				"needs_approval}}]", "no test of the policy reaches rule r"},
		"reached by a test": {
			"rules: [{id: r, when: 'risk >= 3', then: deny}]\ntests: [{name: t, action: {action_type: x}, expect: {outcome: " +
				"deny}}]", ""},
	} {
		p, err := policy.Parse([]byte("version: 1\n" + c.source + "\n"))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		var all []string
		for _, r := range p.Lint() {
			if strings.Contains(r.Detail, "never has an effect") || strings.Contains(r.Detail, "no test of the policy reaches") {
				all = append(all, r.Detail)
			}
		}
		if said := strings.Join(all, "\n"); c.want == "" && said != "" || !strings.Contains(said, c.want) {
			t.Errorf("%s: %q, want %q", name, said, c.want)
		}
	}
}
