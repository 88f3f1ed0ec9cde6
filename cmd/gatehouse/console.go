package main

import (
	"net/http"
	"strings"

	"github.com/gatehouse-dev/gatehouse/internal/console"
	"github.com/gatehouse-dev/gatehouse/internal/signin"
)

// newConsole wires the reviewers' console over the gate.
func newConsole(n *node, signIn signin.Config) (http.Handler, error) {
	ceremonies, err := signin.New(signIn, n.gate, n.log)
	if err != nil {
		return nil, err
	}
	return console.New(console.Config{
		Actions: n.tracing.Actions(n.gate), Dispatch: n.gate, Admin: n.gate, Policies: n.gate, Audit: n.gate, LogChecker: n.gate, PolicyChecker: n.gate, Statistics: n.gate,
		Browser: n.gate, Sessions: n.gate, SignIn: ceremonies, Hints: n.hub, Log: n.log,
		Secure: strings.HasPrefix(signIn.PublicURL, "https://"),
	})
}
