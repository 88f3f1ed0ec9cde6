package serve

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/client"
	"github.com/gatehouse-dev/gatehouse/connector/stepfunctions/stepfunctionstest"
	"github.com/gatehouse-dev/gatehouse/internal/config"
	"github.com/gatehouse-dev/gatehouse/internal/notify/mailtest"
	"github.com/gatehouse-dev/gatehouse/internal/ring"
	"github.com/gatehouse-dev/gatehouse/internal/servetest"
)

// TestCallbacksPage reads each configuration of docs/callbacks.md, and the state machine that it
// names and its bodies as JSON.
func TestCallbacksPage(t *testing.T) {
	t.Setenv("CALLBACK_SECRET", "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
	t.Setenv("AWS_ACCESS_KEY_ID", "id")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "key")
	page, err := os.ReadFile("../../docs/callbacks.md")
	must(t, err)
	var on []string
	for _, block := range regexp.MustCompile("(?s)```yaml\n(.*?)```").FindAllSubmatch(page, -1) {
		cfg, err := config.Parse("gatehouse.yaml", block[1])
		must(t, err)
		n := &Node{config: cfg, Backplane: &Backplane{}}
		infos, err := n.callbacks()
		if err != nil || len(n.channels) != len(infos) {
			t.Fatalf("%d channels, %v", len(n.channels), err)
		}
		for _, info := range infos {
			on = append(on, info.Type)
		}
	}
	if got := strings.Join(on, " "); got != "webhook step_functions nats" {
		t.Errorf("the page enables %s", got)
	}
	machine, err := os.ReadFile("../../examples/stepfunctions/human-review.asl.json")
	if err != nil || !json.Valid(machine) {
		t.Errorf("the state machine: %v", err)
	}
	for _, block := range regexp.MustCompile("(?s)```json\n(.*?)```").FindAllSubmatch(page, -1) {
		text := string(block[1])
		if strings.HasPrefix(text, `"callback"`) {
			text = "{" + text + "}"
		}
		if !json.Valid([]byte(text)) {
			t.Errorf("this is not JSON: %s", text)
		}
	}
}

// TestCallbackMistakes: the error names each mistake.
func TestCallbackMistakes(t *testing.T) {
	t.Parallel()
	const secrets = "\nsecrets: {s: whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw, bad: x, i: i, k: k}\n"
	for source, want := range map[string]string{
		"callbacks: {webhook: {hosts: [x.example]}}":                "callbacks.webhook.secret: is required",
		"callbacks: {webhook: {hosts: [x.example], secret: no}}":    "secrets has no entry",
		"callbacks: {webhook: {hosts: [x.example], secret: bad}}":   "callbacks.webhook.secret: must be whsec_",
		"callbacks: {webhook: {secret: s}}":                         "callbacks.webhook.hosts or private_hosts is required",
		"callbacks: {webhook: {hosts: [\"https://x\"], secret: s}}": "callbacks.webhook.hosts:",
		"callbacks: {tenants: [\"a b\"]}":                           "callbacks.tenants:",
		"callbacks: {nats: {prefix: \"a.*\"}}":                      "callbacks.nats.prefix:",
		"callbacks: {step_functions: {region: eu-west-1, " +
			"account: \"1\"}}": "callbacks.step_functions.access_key_id: is required",
		"callbacks: {step_functions: {access_key_id: i, secret_access_key: k, " +
			"account: \"1\"}}": "callbacks.step_functions.region:",
		"callbacks: {webhooks: {}}": "unknown key webhooks",
		"channels: {callback.webhook: {kind: webhook, url: \"https://x.example\", secret: s}}": "cannot name a channel",
	} {
		cfg, err := config.Parse("gatehouse.yaml", []byte(source+secrets))
		if err == nil {
			_, err = (&Node{config: cfg, Backplane: &Backplane{}}).callbacks()
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", source, err, want)
		}
	}
}

// callbackServer serves a configuration, with the agent bot and the approver ana.
func callbackServer(t *testing.T, source string) (*Server, *client.Client) {
	t.Helper()
	policy := filepath.Join(t.TempDir(), "policy.yaml")
	if err := os.WriteFile(policy, []byte(`version: 1
links: {decide_up_to: 3}
risk: {promote: 3}
approvals: {3: {required: 1, roles: [approver], expiry: 24h}}
`), 0o600); err != nil {
		t.Fatal(err)
	}
	s, creds := serveSource(t, source+`
connectors: {assets: {type: http, base_url: "http://127.0.0.1:9", allow_private: true,
  operations: {update: {method: POST, path: "/x"}}}}
policy: {file: `+policy+`}
`)
	servetest.NewPrincipal(t, s.Gate, creds, "ana", gatehouse.KindPerson, gatehouse.RoleApprover)
	return s, servetest.NewClient(t, s.Gate, s.URL, creds, "bot", gatehouse.KindAgent, gatehouse.RoleProposer)
}

func promotion(c *gatehouse.Callback) *gatehouse.Proposal {
	return &gatehouse.Proposal{
		ActionType: "promote", Connector: "assets", Operation: "update",
		Target:         gatehouse.Target{EntityType: "asset", EntityRef: "REQ-F-AUTH-001"},
		ProposedChange: `{"edge":"requirements_design"}`, Callback: c,
	}
}

func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for limit := time.Now().Add(30 * time.Second); !ok(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(limit) {
			t.Fatalf("never: %s", what)
		}
	}
}

// TestHumanReviewOfAWorkflow pauses a workflow at a task token, mails the reviewer a link
// that is signed over the hash of the token, decides by that link, and resumes the
// workflow with the decision: approved once, rejected once.
func TestHumanReviewOfAWorkflow(t *testing.T) {
	t.Parallel()
	aws, smtp := stepfunctionstest.New(t), mailtest.Start(t)
	s, agent := callbackServer(t, fmt.Sprintf(`
channels: {mail: {kind: email, smtp: %q, ca: %q, from: gatehouse@example.com, addresses: {ana: ana@example.com}}}
callbacks:
  step_functions: {region: eu-west-1, account: "123456789012", access_key_id: i, secret_access_key: k, endpoint: %q,
    allow_private: true}
secrets: {i: %s, k: %s}
links: {master_key: %q}
sign_in: {public_url: "https://gate.example.com"}`,
		smtp.Addr, smtp.CA, aws.URL, stepfunctionstest.KeyID, stepfunctionstest.SecretKey, ring.NewMasterKey()))
	answers := map[string]string{"approve": "SUCCEEDED", "reject": "FAILED"}
	mails := 0
	for _, decision := range []string{"approve", "reject"} {
		token, arn := "wait-for-"+decision, stepfunctionstest.PrefixARN+"execution:iterate:"+decision
		aws.Set(func() {
			aws.Executions[arn] = &stepfunctionstest.Run{Input: "{}", Status: "RUNNING"}
			aws.Tokens[token] = arn
		})
		a, _, err := agent.Propose(t.Context(), promotion(&gatehouse.Callback{
			Type: gatehouse.CallbackStepFunctions, TaskToken: token, ExecutionARN: arn,
		}))
		must(t, err)
		if a.Callback == nil || a.Callback.TaskToken != "" ||
			a.Callback.TaskTokenHash != gatehouse.HashTaskToken(token) {
			t.Fatalf("the answer's callback: %+v", a.Callback)
		}
		mails++
		mail := smtp.Await(t, mails)[mails-1]
		link := regexp.MustCompile(`/review/(rev_\w+)\?token=([\w-]+)`).FindStringSubmatch(mail.Text)
		code := regexp.MustCompile(`Code: (\w{6})\.`).FindStringSubmatch(mail.Text)
		if link == nil || code == nil || strings.Contains(mail.Text, token) {
			t.Fatalf("the mail:\n%s", mail.Text)
		}
		// 32 bytes more than without a callback.
		if len(link[2]) < 180 {
			t.Errorf("a token of %d characters has no hash", len(link[2]))
		}
		decide := func() int {
			req, err := http.NewRequestWithContext(t.Context(), http.MethodPost,
				s.URL+"/api/v1/reviews/"+link[1]+"/"+decision+"?token="+link[2]+"&reason=looked",
				strings.NewReader(`{"code":"`+code[1]+`"}`))
			must(t, err)
			req.Header.Set("Content-Type", "application/json")
			answer, err := http.DefaultClient.Do(req)
			must(t, err)
			_ = answer.Body.Close()
			return answer.StatusCode
		}
		if status := decide(); status != http.StatusOK {
			t.Fatalf("%s by link: %d", decision, status)
		}
		if status := decide(); status != http.StatusConflict {
			t.Errorf("the second click: %d", status)
		}
		eventually(t, decision+" resumes the workflow", func() (done bool) {
			aws.Set(func() { done = aws.Executions[arn].Status == answers[decision] })
			return done
		})
		aws.Set(func() {
			b, err := json.Marshal(aws.Executions[arn].Events)
			if err != nil || !strings.Contains(string(b), "looked") || !strings.Contains(string(b), "ana") {
				t.Errorf("the workflow gets %s, %v", b, err)
			}
		})
	}
}

// TestWebhookCallbackServed notifies an agent over HTTP of the decision and of the end, with
// signatures that the Go client's receiver accepts.
func TestWebhookCallbackServed(t *testing.T) {
	t.Parallel()
	const secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
	receiver, err := client.NewReceiver(secret)
	must(t, err)
	var mu sync.Mutex
	var told []string
	agentEnd := httptest.NewServer(receiver.Handler(func(_ context.Context, h *client.Webhook) error {
		mu.Lock()
		defer mu.Unlock()
		told = append(told, h.Type+" "+h.Status)
		return nil
	}))
	t.Cleanup(agentEnd.Close)
	host := strings.TrimPrefix(agentEnd.URL, "http://")
	_, agent := callbackServer(t, fmt.Sprintf(`
callbacks: {webhook: {private_hosts: [%q], secret: s}}
secrets: {s: %s}`, host, secret))
	a, _, err := agent.Propose(
		t.Context(),
		promotion(&gatehouse.Callback{Type: gatehouse.CallbackWebhook, URL: agentEnd.URL}),
	)
	must(t, err)
	if _, err := agent.Cancel(t.Context(), a.ID); err != nil {
		t.Fatal(err)
	}
	eventually(t, "both callbacks arrive", func() bool {
		mu.Lock()
		defer mu.Unlock()
		return len(told) == 2
	})
	mu.Lock()
	defer mu.Unlock()
	slices.Sort(told) // on a slow machine both are due at once
	if got := strings.Join(told, ", "); got != "action.decided canceled, action.finished canceled" {
		t.Errorf("got %s", got)
	}
	_, _, err = agent.Propose(
		t.Context(),
		promotion(&gatehouse.Callback{Type: gatehouse.CallbackWebhook, URL: "https://elsewhere.example"}),
	)
	if gatehouse.CodeOf(err) != gatehouse.CodeInvalid {
		t.Errorf("another host: %v", err)
	}
	_, _, err = agent.Propose(t.Context(), promotion(&gatehouse.Callback{Type: gatehouse.CallbackNATS, Subject: "x"}))
	if gatehouse.CodeOf(err) != gatehouse.CodeUnsupported || !strings.Contains(err.Error(), "callbacks.nats") {
		t.Errorf("a type that is off: %v", err)
	}
}
