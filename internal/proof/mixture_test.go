package proof

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/connector/stepfunctions/stepfunctionstest"
	"github.com/gatehouse-dev/gatehouse/internal/mssqltest"
	"github.com/gatehouse-dev/gatehouse/internal/snowtest"
)

// mixture is the fake targets of a storm besides the shop and the crm:
//
//	erp   class A, a database of SQL Server: the record of a change commits with it
//	help  class B, ServiceNow with the business rule that compares the version
//	desk  class C, ServiceNow as it comes: one automatic call
//
// and the systems of systems_test.go, one for each other connector.
//
// They live in the test process and so survive every kill of the server. Each action has a row, or an
// incident, of its own.
type mixture struct {
	erp  *mssqltest.Server
	snow *snowtest.Server
	url  string
	rows atomic.Int64
	*fakes
	running atomic.Int64 // requests in progress
	// stall delays a request before its effect; nil for none.
	stall atomic.Pointer[func(*http.Request)]
	// unguarded removes the condition of help.
	unguarded atomic.Bool
}

const mixturePassword = "pass-of-the-storm"

func newMixture(t *testing.T) *mixture {
	t.Helper()
	m := &mixture{erp: mssqltest.New(t)}
	err := m.erp.Exec(t.Context(), `CREATE TABLE parts (id VARCHAR(40) PRIMARY KEY, price NUMERIC(12,2), version BIGINT)`)
	if err != nil {
		t.Fatal(err)
	}
	m.serve(t)
	return m
}

// serve serves all targets but the database.
func (m *mixture) serve(t *testing.T) {
	t.Helper()
	m.snow = snowtest.New(snowtest.Options{
		Users: map[string]snowtest.User{"gate": {Password: mixturePassword}},
		Rule: func(_ string, was, write map[string]string) bool {
			expected := write["u_gatehouse_expected"]
			delete(write, "u_gatehouse_expected")
			return expected == "" || expected == was["sys_mod_count"] || m.unguarded.Load()
		},
	})
	s := httptest.NewServer(m.stalled(m.snow))
	t.Cleanup(func() {
		s.CloseClientConnections()
		s.Close()
	})
	m.url = s.URL
	m.fakes = newFakes(t, m)
}

// configured is YAML that adds all targets to the connectors of a configuration.
func (m *mixture) configured() string {
	return strings.Replace(`  erp:
    type: sql
    dsn: "ERP"
    entities: {part: {table: parts, key: id, version: version}}
`, "ERP", m.erp.DSN(), 1) + m.served()
}

// served is the configuration of all connectors but erp.
func (m *mixture) served() string {
	return strings.ReplaceAll(`  desk:
    type: servicenow
    instance: "SNOW"
    allow_private: true
    auth: {basic: {username: gate, password: {secret: snow}}}
    tables: {incident: {}}
  help:
    type: servicenow
    instance: "SNOW"
    allow_private: true
    auth: {basic: {username: gate, password: {secret: snow}}}
    condition: {}
    tables: {incident: {}}
`, "SNOW", m.url) + m.connectors
}

// withSecret adds the mixture's secrets to those of a configuration.
func (m *mixture) withSecret(configuration string) string {
	return strings.Replace(configuration, "secrets: {", "secrets: {snow: "+mixturePassword+", fake: "+mixturePassword+
		", awsid: "+stepfunctionstest.KeyID+", awskey: "+stepfunctionstest.SecretKey+", ", 1)
}

// part proposes a price for a new row of the erp.
func (m *mixture) part(t testing.TB, amount int64) object {
	id := fmt.Sprintf("PART-%d", m.rows.Add(1))
	if err := m.erp.Exec(t.Context(), `INSERT INTO parts VALUES ('`+id+`', '10.00', 1)`); err != nil {
		t.Error(err)
	}
	return object{
		"action_type": "price_change", "connector": "erp", "operation": "update",
		"target":        object{"entity_type": "part", "entity_ref": id, "version": "1"},
		"current_state": object{"price": "10.00"}, "proposed_change": object{"price": fmt.Sprintf("%d.50", amount)},
	}
}

// incident proposes to assign a new incident of the desk, or of the help, which compares versions.
func (m *mixture) incident(connector string) object {
	id := m.snow.AddIncident(map[string]string{"short_description": "the storm"})
	return object{
		"action_type": "field_change", "connector": connector, "operation": "update",
		"target":        object{"entity_type": "incident", "entity_ref": id, "version": "0"},
		"current_state": object{"state": "1"}, "proposed_change": object{"state": "2"},
	}
}

// propose proposes a change of one of the systems, each time of another object.
func (m *mixture) propose(system string) object {
	if systems[system].class == "" {
		return m.incident(system)
	}
	return merged(systems[system].propose(m.rows.Add(1)), object{"connector": system})
}

// count returns the number of effects in the targets' own ledgers, by the name of the effect.
func (m *mixture) count(t *testing.T) map[string]int {
	t.Helper()
	out := m.all()
	rows, err := m.erp.DB.Query(`SELECT p.id, p.version - 1, count(r.tenant) FROM parts p
		LEFT JOIN gatehouse_applied r ON r.entity = 'part/' || p.id GROUP BY p.id`)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var id string
		var changes, records int
		if err := rows.Scan(&id, &changes, &records); err != nil {
			t.Fatal(err)
		}
		if changes != records {
			t.Errorf("invariant 5: %s has %d changes and %d records of them", id, changes, records)
		}
		out[id] = changes
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	for _, w := range m.snow.Writes() { // also a write without a difference: it was a second call
		out[w.SysID]++
	}
	return out
}

func classOf(connector string) string {
	if s, ok := systems[connector]; ok {
		return s.class
	}
	return map[string]string{"erp": "A", "help": "B", "desk": "C"}[connector]
}

// check holds each class to its promise: nothing twice, and nothing lost that was approved.
func (m *mixture) check(t *testing.T, l *leg, actions map[string]*gatehouse.Action) {
	t.Helper()
	effects := m.count(t)
	for _, a := range actions {
		class, of := classOf(a.Connector), a.Target.EntityRef
		if _, ok := systems[a.Connector]; ok {
			of = effectOf(a)
		}
		if class == "" {
			continue
		}
		n := effects[of]
		delete(effects, of)
		if n > 1 {
			t.Errorf("invariant 5: %s had %d effects on %s", a.ID, n, a.Connector)
		}
		switch {
		case a.Status == gatehouse.StatusApplied && n != 1:
			t.Errorf("%s is applied, but had %d effects on %s", a.ID, n, a.Connector)
		case a.Status == gatehouse.StatusApplied:
			l.add("applied with class "+class, 1)
			l.add("applied by "+a.Connector, 1)
		case a.Status == gatehouse.StatusUnknown && class == "C":
			l.add("unknown with class C", 1)
		case a.Status == gatehouse.StatusUnknown, a.Status == gatehouse.StatusFailed:
			t.Errorf("%s is %s on %s, of class %s", a.ID, a.Status, a.Connector, class)
		case n != 0:
			t.Errorf("%s is %s, but had an effect on %s", a.ID, a.Status, a.Connector)
		}
	}
	for ref, n := range effects {
		if n > 0 {
			t.Errorf("invariant 4: %s was changed %d times for no action", ref, n)
		}
	}
}
