package slack

import (
	"errors"
	"net/url"
	"strings"
)

// Manifest is the app's manifest for "Create an app from a manifest". publicURL is this server's
// address for Slack; with "", the app uses Socket Mode, which needs no address.
func Manifest(publicURL string) (string, error) {
	request, command, socket := "", "", "true"
	if publicURL != "" {
		u, err := url.Parse(publicURL)
		switch {
		case strings.ContainsAny(publicURL, "?# \"'\n"):
			return "", errors.New("the address cannot have a query, a fragment, a quote or a space")
		case err != nil || u.Scheme != "https" || u.Host == "":
			return "", errors.New("the address must begin with https:// and a host, since Slack calls it")
		}
		to := strings.TrimSuffix(publicURL, "/") + InteractionsPath
		request, command, socket = "\n    request_url: \""+to+"\"", "\n      url: \""+to+"\"", "false"
	}
	return `display_information:
  name: Gatehouse
  description: Approvals of what AI agents propose
features:
  bot_user:
    display_name: Gatehouse
    always_online: true
  slash_commands:
    - command: /gatehouse` + command + `
      description: Link your Slack account to Gatehouse
      usage_hint: link CODE
      should_escape: false
oauth_config:
  scopes:
    bot:
      - chat:write
      - commands
      - channels:history
      - groups:history
settings:
  interactivity:
    is_enabled: true` + request + `
  org_deploy_enabled: false
  socket_mode_enabled: ` + socket + `
  token_rotation_enabled: false
`, nil
}
