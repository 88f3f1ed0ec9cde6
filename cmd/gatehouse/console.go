package main

import (
	"net/http"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/gatehouse-dev/gatehouse/internal/console"
	"github.com/gatehouse-dev/gatehouse/internal/signin"
	"github.com/gatehouse-dev/gatehouse/internal/telemetry"
)

// newConsole wires the reviewers' console over the gate. Its decisions are
// counted and traced as the API's are.
func newConsole(n *node, signIn signin.Config, metrics *prometheus.Registry) (http.Handler, error) {
	ceremonies, err := signin.New(signIn, n.gate, n.log)
	if err != nil {
		return nil, err
	}
	actions, err := telemetry.CountDecisions(metrics, "console", n.tracing.Actions(n.gate))
	if err != nil {
		return nil, err
	}
	return console.New(console.Config{
		Actions: actions, Dispatch: n.gate, Admin: n.gate, Policies: n.gate, Audit: n.gate, Runs: n.runs, LogChecker: n.gate, PolicyChecker: n.gate, Statistics: n.gate, Notices: n.gate,
		Notifications: n.gate, Reviews: n.gate, Targets: n.gate, Slack: n.gate, Delegations: n.gate, Grants: n.gate,
		Browser: n.gate, Sessions: n.gate, Self: n.gate, Views: n.gate,
		SignIn: ceremonies, Hints: n.hub, Log: n.log,
		PublicURL: signIn.PublicURL, TLS: n.secure != nil, Development: n.development,
	})
}
