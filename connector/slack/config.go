package slack

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/connector"
)

// Config defines a connector of type slack.
type Config struct {
	// Type is "slack" or empty.
	Type string `yaml:"type"`
	// Tenants lists the tenants that may use the connector. The server enforces it, not the
	// connector.
	Tenants []string `yaml:"tenants"`
	// Token is the secret with the bot token, xoxb-….
	Token connector.Secret `yaml:"token" form:"first"`
	// Channels are the channels that actions can name, by id.
	Channels map[string]Channel `yaml:"channels" form:"first"`
	// AllowBroadcast permits texts that notify whole groups, such as <!channel>.
	AllowBroadcast bool `yaml:"allow_broadcast"`
	// BaseURL is the Web API's address; https://slack.com/api by default.
	BaseURL string `yaml:"base_url"`
	// AllowPrivate permits a BaseURL at an internal address, and plain http.
	AllowPrivate bool `yaml:"allow_private"`
	// Timeout limits a call with its preceding reads, 30s by default.
	Timeout gatehouse.Span `yaml:"timeout"`
}

// Channel holds an operator's declarations for a channel.
type Channel struct {
	// Operations declares post, update and delete in this channel.
	Operations map[string]Operation `yaml:"operations"`
}

// Operation holds an operator's declarations for an operation.
type Operation struct {
	// Floor is the minimum level; 4 by default for delete.
	Floor gatehouse.RiskLevel `yaml:"floor"`
}

// channelForm is the id of a channel, a private channel or a direct message; it matches neither
// users nor names.
var channelForm = regexp.MustCompile(`^[CGD][A-Z0-9]{2,20}$`)

func (c *Config) validate() error {
	if c.Type != "" && c.Type != "slack" {
		return fmt.Errorf("type: is %s, not slack", gatehouse.Quote(c.Type))
	}
	if len(c.Channels) == 0 {
		return errors.New("channels: at least one is needed, such as C0123ABC: {}")
	}
	for _, id := range slices.Sorted(maps.Keys(c.Channels)) {
		if !channelForm.MatchString(id) {
			return fmt.Errorf("channels: %s is not the id of a channel, such as C0123ABC", gatehouse.Quote(id))
		}
		for _, op := range slices.Sorted(maps.Keys(c.Channels[id].Operations)) {
			at := fmt.Sprintf("channels.%s.operations.%s", id, op)
			if !slices.Contains(operationNames, op) {
				return fmt.Errorf("%s: unknown operation; there are %s", at, strings.Join(operationNames, ", "))
			}
			if !c.Channels[id].Operations[op].Floor.Valid() {
				return fmt.Errorf("%s.floor: must be 1 to 5", at)
			}
		}
	}
	return nil
}
