package cli

import (
	"fmt"

	"github.com/gatehouse-dev/gatehouse/internal/notify/slack"
	"github.com/gatehouse-dev/gatehouse/internal/term"
)

// notifySlackManifestCmd prints the manifest from which a Slack app is made.
type notifySlackManifestCmd struct {
	PublicURL string `name:"public-url" placeholder:"URL" help:"The https URL at which Slack reaches this server; without it the app uses Socket Mode."`
}

func (*notifySlackManifestCmd) Help() string {
	return `
Prints YAML for "Create an app from a manifest" in Slack. Works without a server.

Examples:

    gatehouse notify slack-manifest
    gatehouse notify slack-manifest --public-url https://gate.example.com
`
}

func (c *notifySlackManifestCmd) Run(g *globals) error {
	text, err := slack.Manifest(c.PublicURL)
	if err != nil {
		return term.Usagef("--public-url: %v", err)
	}
	if g.JSON {
		return g.PrintJSON(map[string]string{"manifest": text})
	}
	_, err = fmt.Fprint(g.Stdout, text)
	return err
}
