package config_test

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/gatehouse-dev/gatehouse/internal/config"
)

// TestChannelsPage reads every configuration of docs/channels.md.
func TestChannelsPage(t *testing.T) {
	t.Setenv("SMTP_PASSWORD", "hunter2")
	t.Setenv("HOOK_SECRET", "whsec_x")
	t.Setenv("SLACK_BOT_TOKEN", "xoxb-1")
	t.Setenv("SLACK_SIGNING_SECRET", "s")
	t.Setenv("SLACK_APP_TOKEN", "xapp-1")
	page, err := os.ReadFile("../../docs/channels.md")
	if err != nil {
		t.Fatal(err)
	}
	kinds := ""
	for _, block := range regexp.MustCompile("(?s)```yaml\n(.*?)```").FindAllStringSubmatch(string(page), -1) {
		source := block[1]
		if !strings.Contains(source, "\nsecrets:") {
			source += `
secrets: {slack_bot: xoxb-1, teams_workflow: "https://x.example", pagerduty_key: k, aws_id: i, aws_key: k}
`
		}
		c, err := config.Parse("gatehouse.yaml", []byte(source))
		if err != nil {
			t.Fatalf("%v in\n%s", err, source)
		}
		for _, name := range []string{"mail", "audit-hook", "ops", "desk", "oncall", "topic", "phones"} {
			if kind := c.Channels[name].Kind; kind != "" {
				kinds += kind + " "
			}
		}
	}
	if kinds != "email webhook slack teams pagerduty sns webpush " {
		t.Errorf("the page configures %s", kinds)
	}
}

// TestChannelMistakes: the error of each mistake names its key.
func TestChannelMistakes(t *testing.T) {
	t.Parallel()
	const hook = "channels: {h: {kind: webhook, url: \"https://x.example\", secret: s}}\nsecrets: {s: x}\n"
	for source, want := range map[string]string{
		"channels: {x: {kind: pigeon}}":                            "channels.x.kind: must be",
		"channels: {x: {kind: email, smtp: \"h:25\"}}":             "channels.x.from: is required",
		"channels: {x: {kind: slack, channel: C1, token: nobody}}": "channels.x.token: secrets has no entry named",
		"channels: {\"x y\": {kind: email}}":                       "cannot name a channel",
		hook + "routes: [{channels: [other]}]":                     "routes[0].channels: there is no channel",
		hook + "routes: [{risk: 3}]":                               "routes[0].channels: must name a channel",
		hook + "routes: [{channels: [h], risk: 9}]":                "routes[0].risk: must be 1 to 5",
		hook + "routes: [{channels: [h], tell: [all]}]":            "routes[0].tell:",
		hook + "routes: [{channels: [h], types: [\"[\"]}]":         "routes[0].types:",
		hook + "digest: {every: 48h}":                              "digest.every: must be",
		hook + "digest: {after: 0}":                                "0 is not allowed",
	} {
		_, err := config.Parse("gatehouse.yaml", []byte(source))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s\n%v, want %s", source, err, want)
		}
	}
}
