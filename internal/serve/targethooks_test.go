package serve

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/config"
	"github.com/gatehouse-dev/gatehouse/internal/hook"
	"github.com/gatehouse-dev/gatehouse/internal/servetest"
	"github.com/gatehouse-dev/gatehouse/internal/term"
)

// signedReports returns the blocks of "Signed reports" in docs/api.md.
func signedReports(t *testing.T) (configuration, script string) {
	t.Helper()
	page, err := os.ReadFile("../../docs/api.md")
	must(t, err)
	_, part, ok := strings.Cut(string(page), "**Signed reports**")
	blocks := regexp.MustCompile("(?s)```(?:yaml|sh)\n(.*?)```").FindAllStringSubmatch(part, 2)
	if !ok || len(blocks) != 2 {
		t.Fatal("docs/api.md has no configuration and script of signed reports")
	}
	return blocks[0][1], blocks[1][1]
}

// TestSignedReports serves the configuration of the page, runs its script, and sends requests that
// must be refused.
func TestSignedReports(t *testing.T) {
	t.Parallel()
	source, script := signedReports(t)
	s, creds := serveSource(t, source)
	agent := servetest.NewClient(t, s.Gate, s.URL, creds, "bot", gatehouse.KindAgent, gatehouse.RoleProposer)
	propose := func() *gatehouse.Action {
		t.Helper()
		out, _, err := agent.Propose(t.Context(), &gatehouse.Proposal{
			ActionType: "price_change", Connector: "erp", Operation: "field_update",
			Target:         gatehouse.Target{EntityType: "item", EntityRef: "SKU-1", Version: "7"},
			ProposedChange: `{"price":"9.00"}`, CurrentState: `{"price":"8.00"}`,
		})
		must(t, err)
		return out
	}
	mark := func(a *gatehouse.Action) *gatehouse.TargetMark {
		t.Helper()
		a, err := agent.FindAction(t.Context(), a.ID)
		must(t, err)
		return a.Approval.TargetChanged
	}

	first := propose()
	cmd := exec.CommandContext(t.Context(), "sh", "-euc", script)
	cmd.Env = append(os.Environ(), "GATEHOUSE_URL="+s.URL)
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), `{"marked":1}`) {
		t.Fatalf("the page's script: %s, %v", out, err)
	}
	if m := mark(first); m == nil || m.Version != "8" || m.By != "webhook erp" {
		t.Errorf("the mark: %+v", m)
	}

	post := func(source string, h http.Header, body string) (int, http.Header) {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.URL+"/api/v1/hooks/targets/"+source,
			strings.NewReader(body))
		must(t, err)
		req.Header = h
		resp, err := http.DefaultClient.Do(req)
		must(t, err)
		defer resp.Body.Close()
		return resp.StatusCode, resp.Header
	}
	key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(s.config.Secrets["erp_reports"], "whsec_"))
	must(t, err)
	signed := func(id string, at time.Time, body string) http.Header {
		mac := hmac.New(sha256.New, key)
		fmt.Fprintf(mac, "%s.%d.%s", id, at.Unix(), body)
		signature := "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil))
		return http.Header{
			"Webhook-Id": {id}, "Webhook-Timestamp": {fmt.Sprint(at.Unix())}, "Webhook-Signature": {signature},
		}
	}
	const body = `{"table": "item", "record": {"id": "SKU-1", "version": 9}}`
	h := signed("msg_1", time.Now(), body)
	if status, _ := post("erp", h, body); status != http.StatusOK {
		t.Errorf("signed: %d", status)
	}
	second := propose()
	if status, got := post("erp", h, body); status != http.StatusOK || got.Get("Idempotency-Replayed") != "true" {
		t.Errorf("again: %d %v", status, got)
	}
	if status, _ := post("erp", h, body+" "); status != http.StatusUnauthorized {
		t.Errorf("another body: %d", status)
	}
	late := signed("msg_2", time.Now().Add(-hook.Tolerance-time.Minute), body)
	if status, _ := post("erp", late, body); status != http.StatusUnauthorized {
		t.Errorf("too old: %d", status)
	}
	if status, _ := post("erp", nil, body); status != http.StatusUnauthorized {
		t.Errorf("unsigned: %d", status)
	}
	if status, _ := post("crm", signed("msg_3", time.Now(), body), body); status != http.StatusNotFound {
		t.Errorf("an unknown source: %d", status)
	}
	if status, _ := post("erp", signed("msg_4", time.Now(), "{}"), "{}"); status != http.StatusUnprocessableEntity {
		t.Errorf("no entity: %d", status)
	}
	if m := mark(second); m != nil {
		t.Errorf("a refused or repeated report marked %+v", m)
	}
	metrics := servetest.Scrape(t, s.URL)
	for result, want := range map[string]int{"accepted": 2, "replayed": 1, "refused": 4, "failed": 0} {
		line := fmt.Sprintf("gatehouse_target_reports_total{result=%q,source=\"erp\"} %d\n", result, want)
		if !strings.Contains(metrics, line) {
			t.Errorf("/metrics lacks %s", line)
		}
	}
	if strings.Contains(metrics, "crm") {
		t.Error("an invented source is in the metrics")
	}
}

// TestReportSecrets: a secret that the kind cannot use, and one that two sources accept, stop the
// server, and config check reports them.
func TestReportSecrets(t *testing.T) {
	t.Parallel()
	cfg := servetest.Config(t, `
connectors: {erp: {type: worker, operations: {print: {}}}}
secrets:
  bad: "not base64"
  good: whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw
  old: "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD"
  both: "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSx\nC2FVsBQIhrscChlQIMV+b5sSYspob7oD"
hooks:
  targets:
    a: {connector: erp, secret: bad, entity_type: item, entity_ref: /id}
    b: {connector: erp, secret: bad, kind: github, entity_type: item, entity_ref: /id}
    c: {connector: erp, secret: good, entity_type: item, entity_ref: /id}
    d: {connector: erp, secret: old, entity_type: item, entity_ref: /id}
    e: {connector: erp, secret: both, entity_type: item, entity_ref: /id}
`)
	l := &ConfigChecker{Offline: true}
	l.All(t.Context(), cfg)
	got := map[string]string{}
	for _, c := range l.Checks {
		got[c.Name] = c.Result
		if strings.Contains(c.Detail, "internal") {
			t.Errorf("%s: a code that says nothing to an operator: %q", c.Name, c.Detail)
		}
		if strings.Contains(c.Detail, "not base64") {
			t.Errorf("the secret is in %q", c.Detail)
		}
	}
	if got["target reports a"] != term.CheckFail || got["target reports b"] != term.CheckOK ||
		got["target reports c"] != term.CheckOK || got["target reports d"] != term.CheckFail ||
		got["target reports e"] != term.CheckFail {
		t.Errorf("%v", got)
	}
	n := openNode(t, cfg)
	servetest.Bootstrap(t, n.Gate)
	for _, unusable := range []string{"a", "d"} {
		maps.DeleteFunc(cfg.Hooks.Targets, func(name string, _ config.TargetSource) bool { return name < unusable })
		_, err := Start(n, "127.0.0.1:0")
		if err == nil || !strings.Contains(err.Error(), "hooks.targets."+unusable) {
			t.Errorf("served with an unusable secret: %v", err)
		}
	}
}
