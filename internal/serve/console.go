package serve

import (
	"net/http"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/gatehouse-dev/gatehouse/internal/console"
	"github.com/gatehouse-dev/gatehouse/internal/signin"
	"github.com/gatehouse-dev/gatehouse/internal/telemetry"
)

// newConsole wires the reviewers' console over the gate. Its decisions are
// counted and traced like those of the API.
func newConsole(n *Node, signIn signin.Config, metrics *prometheus.Registry) (http.Handler, error) {
	ceremonies, err := signin.New(signIn, n.Gate, n.Log)
	if err != nil {
		return nil, err
	}
	actions, err := telemetry.CountDecisions(metrics, n.tracing.Actions(n.Gate))
	if err != nil {
		return nil, err
	}
	reviews, err := telemetry.CountReviews(metrics, n.tracing.Reviews(n.Gate))
	if err != nil {
		return nil, err
	}
	return console.New(console.Config{
		Actions: actions, Finder: n.Gate, Dispatch: n.Gate, Admin: n.Gate, Policies: n.Gate, Audit: n.Gate, Runs: n.Runs,
		LogChecker: n.Gate, PolicyChecker: n.Gate, Statistics: n.Gate, Notices: n.Gate,
		Notifications: n.Gate, Reviews: reviews, Targets: n.Gate, Slack: n.Gate, Delegations: n.Gate, Grants: n.Gate,
		Devices: n.Gate, Preferences: n.Gate, Unsubscribe: n.Gate, Mandates: n.Gate, Secrets: n.Gate,
		Connectors: connectorPages{n}, ConnectorStore: n.Gate,
		Browser: n.Gate, Sessions: n.Gate, Self: n.Gate, Views: n.Gate, Snoozes: n.Gate,
		SignIn: ceremonies, Hints: n.Hub, Log: n.Log,
		PublicURL: signIn.PublicURL, TLS: n.certSource != nil, Development: n.development,
	})
}
