package config

import (
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/gatehouse-dev/gatehouse"
)

// Channel is one way to reach people, by its name: see docs/channels.md.
type Channel struct {
	// Kind is email, webhook, slack, teams, pagerduty, sns or webpush.
	Kind string `yaml:"kind"`
	// Tenants are the tenants whose messages it takes; default alone if absent.
	Tenants []string `yaml:"tenants"`
	// Quiet are hours in which messages wait; a question waits at most half of its remaining
	// time.
	Quiet *Quiet `yaml:"quiet"`
	// SMTP is the mail server, as HOST:PORT.
	SMTP string `yaml:"smtp"`
	// TLS is starttls (the default), implicit, or none for a server on this machine.
	TLS string `yaml:"tls"`
	// CA holds additional PEM certificates to trust, such as file:ca.pem.
	CA string `yaml:"ca"`
	// Username is the account at the mail server; absent for a server without authentication.
	Username string `yaml:"username"`
	// Password names a secret.
	Password string `yaml:"password"`
	// From is the sender's address.
	From string `yaml:"from"`
	// Bounces is the address for returned mail. It needs a master key.
	Bounces string `yaml:"bounces"`
	// Addresses maps people's names to mail addresses. A name that is itself an address needs no entry.
	Addresses map[string]string `yaml:"addresses"`
	// Domain makes the address NAME@DOMAIN from any name without an entry in addresses.
	Domain string `yaml:"domain"`
	// URL is a webhook's address; for slack, pagerduty and sns it replaces the vendor's.
	URL string `yaml:"url"`
	// Secret is the name of the secret that signs a webhook: whsec_ and 24 to 64 bytes in base64, or
	// whsk_ and an ed25519 key. It may have several lines, each a key that signs.
	Secret string `yaml:"secret"`
	// AllowPrivate permits addresses inside the network, and plain http.
	AllowPrivate bool `yaml:"allow_private"`
	// URLSecret is the secret with the address of a Teams workflow.
	URLSecret string `yaml:"url_secret"`
	// Token is the secret with the Slack app's bot token.
	Token string `yaml:"token"`
	// Channel is the Slack channel's id, such as C0123456789.
	Channel string `yaml:"channel"`
	// SigningSecret is the secret with the app's signing secret, for decisions at /slack/interactions.
	SigningSecret string `yaml:"signing_secret"`
	// AppToken is the secret with the app's token, xapp-…, for decisions over Socket Mode.
	AppToken string `yaml:"app_token"`
	// RoutingKey is the secret with the PagerDuty integration key.
	RoutingKey string `yaml:"routing_key"`
	// Topic is the Amazon SNS topic's ARN.
	Topic string `yaml:"topic"`
	// AccessKeyID is the secret with the access key's id.
	AccessKeyID string `yaml:"access_key_id"`
	// SecretAccessKey is the secret with the access key.
	SecretAccessKey string `yaml:"secret_access_key"`
	// SessionToken is the secret with the token of temporary credentials.
	SessionToken string `yaml:"session_token"`
	// Contact is for the operators of push services: mailto:ADDRESS or an https address.
	Contact string `yaml:"contact"`
}

// Quiet are the hours of each day in which a channel's messages wait.
type Quiet struct {
	// From is the time at which they begin, such as 20:00.
	From string `yaml:"from"`
	// To is the time at which they end, such as 07:00.
	To string `yaml:"to"`
	// Zone is such as Europe/Berlin; UTC by default.
	Zone string `yaml:"zone"`
}

// Route sends some messages over some channels. Every route that matches is used;
// without routes, every channel gets everything.
type Route struct {
	// Types are patterns of action types, such as price_*.
	Types []string `yaml:"types"`
	// Targets are patterns of entity type and reference, such as item/SKU-*.
	Targets []string `yaml:"targets"`
	// Risk is the least risk level, 1 to 5.
	Risk int `yaml:"risk"`
	// Amount is the least amount of a change.
	Amount string `yaml:"amount"`
	// Currency is the amount's currency; any if absent.
	Currency string `yaml:"currency"`
	// Groups are the groups that the approval asks.
	Groups []string `yaml:"groups"`
	// Tell lists kinds of messages: asked (with escalated and reminded), escalated, reminded, decided, expired,
	// dead_letter or unknown; all by default.
	Tell []string `yaml:"tell"`
	// Channels take the messages.
	Channels []string `yaml:"channels"`
	// Fallback lists spare channels: while a channel of the route fails, the first spare that works takes
	// that channel's messages, too.
	Fallback []string `yaml:"fallback"`
}

// Digest bounds the single messages to one recipient on one channel; further messages are combined in
// one digest. Webhooks get every message singly.
type Digest struct {
	// After is how many single messages are sent within Every; 10 by default.
	After Count `yaml:"after"`
	// Every is the time span; 15m by default.
	Every gatehouse.Span `yaml:"every"`
}

// told are the kinds of messages that a route can name.
var told = []string{
	string(gatehouse.NotifyAsked), string(gatehouse.NotifyEscalated), string(gatehouse.NotifyReminded),
	string(gatehouse.NotifyDecided), string(gatehouse.NotifyExpired),
	string(gatehouse.NotifyDeadLetter), string(gatehouse.NotifyUnknown),
}

func (c *Config) validateChannels(file string) error {
	for name, ch := range sorted(c.Channels) {
		if !gatehouse.ValidName(name) || gatehouse.IsCallbackChannel(name) {
			return fmt.Errorf("%s: channels: %s cannot name a channel", file, gatehouse.Quote(name))
		}
		if key, why := ch.problem(c); why != "" {
			return fmt.Errorf("%s: channels.%s.%s: %s", file, name, key, why)
		}
	}
	for i, r := range c.Routes {
		if key, why := r.problem(c.Channels); why != "" {
			return fmt.Errorf("%s: routes[%d].%s: %s", file, i, key, why)
		}
	}
	switch d := c.Digest; {
	case d.After < 0 || d.After > 1000:
		return fmt.Errorf("%s: digest.after: must be 1 to 1000", file)
	case d.Every != 0 && (d.Every.D() < time.Second || d.Every.D() > 24*time.Hour):
		return fmt.Errorf("%s: digest.every: must be 1s to 24h", file)
	}
	return nil
}

// problem finds the errors that can be found without making the channel.
func (c *Channel) problem(all *Config) (key, why string) {
	named := map[string]string{
		"password": c.Password, "secret": c.Secret, "url_secret": c.URLSecret, "token": c.Token,
		"signing_secret": c.SigningSecret, "app_token": c.AppToken,
		"routing_key": c.RoutingKey, "access_key_id": c.AccessKeyID, "secret_access_key": c.SecretAccessKey,
		"session_token": c.SessionToken,
	}
	for key, name := range sorted(named) {
		if name != "" && all.Secrets[name] == "" {
			return key, all.noSecret(name)
		}
	}
	if why := tenantsProblem(c.Tenants); why != "" {
		return "tenants", why
	}
	required := map[string][]string{
		"email": {"smtp", c.SMTP, "from", c.From}, "webhook": {"url", c.URL, "secret", c.Secret},
		"slack": {"token", c.Token, "channel", c.Channel}, "teams": {"url_secret", c.URLSecret},
		"pagerduty": {"routing_key", c.RoutingKey},
		"sns": {
			"topic", c.Topic, "access_key_id", c.AccessKeyID, "secret_access_key", c.SecretAccessKey,
		},
		"webpush": {"contact", c.Contact},
	}
	keys, known := required[c.Kind]
	if !known {
		return "kind", "must be email, webhook, slack, teams, pagerduty, sns or webpush"
	}
	for pair := range slices.Chunk(keys, 2) {
		if pair[1] == "" {
			return pair[0], "is required"
		}
	}
	return "", ""
}

func (r *Route) problem(channels map[string]Channel) (key, why string) {
	if len(r.Channels) == 0 {
		return "channels", "must name a channel"
	}
	for key, names := range sorted(map[string][]string{"channels": r.Channels, "fallback": r.Fallback}) {
		for _, name := range names {
			if _, ok := channels[name]; !ok {
				return key, "there is no channel " + gatehouse.Quote(name)
			}
		}
	}
	if r.Risk < 0 || r.Risk > 5 {
		return "risk", "must be 1 to 5"
	}
	for _, pattern := range r.Types {
		if _, err := path.Match(pattern, ""); err != nil {
			return "types", gatehouse.Quote(pattern) + " is not a valid pattern"
		}
	}
	for _, pattern := range r.Targets {
		if _, err := path.Match(pattern, ""); err != nil || !strings.Contains(pattern, "/") {
			return "targets", gatehouse.Quote(pattern) +
				" is not a pattern of an entity type and a reference, such as item/*"
		}
	}
	if _, err := gatehouse.ParseDecimal(r.Amount); r.Amount != "" && err != nil {
		return "amount", "must be a number"
	}
	if r.Currency != "" && r.Amount == "" {
		return "currency", "needs an amount"
	}
	for _, kind := range r.Tell {
		if !slices.Contains(told, kind) {
			return "tell", gatehouse.Quote(kind) +
				" must be asked, escalated, reminded, decided, expired, dead_letter or unknown"
		}
	}
	return "", ""
}
