package serve

import (
	"context"
	"crypto/ecdsa"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/config"
	"github.com/gatehouse-dev/gatehouse/internal/gate"
	"github.com/gatehouse-dev/gatehouse/internal/notify"
	"github.com/gatehouse-dev/gatehouse/internal/notify/email"
	"github.com/gatehouse-dev/gatehouse/internal/notify/pagerduty"
	"github.com/gatehouse-dev/gatehouse/internal/notify/slack"
	"github.com/gatehouse-dev/gatehouse/internal/notify/sns"
	"github.com/gatehouse-dev/gatehouse/internal/notify/teams"
	"github.com/gatehouse-dev/gatehouse/internal/notify/webhook"
	"github.com/gatehouse-dev/gatehouse/internal/notify/webpush"
	"github.com/gatehouse-dev/gatehouse/internal/telemetry"
)

// pushKey finds the key that identifies a tenant to push services.
type pushKey func(ctx context.Context, tenant string) (*ecdsa.PrivateKey, error)

// newChannels makes the configured channels, by name.
func newChannels(cfg *config.Config, key pushKey) ([]*notify.Configured, error) {
	keys, err := bounceKeys(cfg)
	if err != nil {
		return nil, err
	}
	var list []*notify.Configured
	for _, name := range slices.Sorted(maps.Keys(cfg.Channels)) {
		entry := cfg.Channels[name]
		c, err := newChannel(entry, cfg.Secret, keys, key)
		if err != nil {
			return nil, fmt.Errorf("channels.%s.%w", name, err)
		}
		made := &notify.Configured{Name: name, Tenants: tenantsOrDefault(entry.Tenants), Channel: c}
		if q := entry.Quiet; q != nil {
			if made.Quiet, err = (gatehouse.QuietHours{From: q.From, To: q.To, Zone: q.Zone}).Read(); err != nil {
				return nil, fmt.Errorf("channels.%s.quiet: %w", name, err)
			}
		}
		list = append(list, made)
	}
	return list, nil
}

// tenantsOrDefault returns the configured tenants, or the default tenant if there are none.
func tenantsOrDefault(configured []string) []string {
	if len(configured) == 0 {
		return []string{gatehouse.DefaultTenant}
	}
	return configured
}

// newChannel makes one channel; secret finds a secret by its name.
func newChannel(
	c config.Channel, secret func(string) (string, error), bounces [][]byte, key pushKey,
) (notify.Channel, error) {
	named := func(name string) string {
		if name == "" {
			return ""
		}
		value, err := secret(name)
		if err != nil {
			return "" // config.Load refuses such a configuration
		}
		return value
	}
	switch c.Kind {
	case "email":
		return email.New(email.Config{
			SMTP: c.SMTP, TLS: c.TLS, CA: c.CA, Username: c.Username, Password: named(c.Password), From: c.From,
			Addresses: c.Addresses, Domain: c.Domain, Bounces: c.Bounces, BounceKeys: bounces,
		})
	case "webhook":
		return webhook.New(webhook.Config{URL: c.URL, Secret: named(c.Secret), AllowPrivate: c.AllowPrivate})
	case "slack":
		return slack.New(slack.Config{
			Token: named(c.Token), Channel: c.Channel, BaseURL: c.URL, AllowPrivate: c.AllowPrivate,
			SigningSecret: named(c.SigningSecret), AppToken: named(c.AppToken),
		})
	case "teams":
		return teams.New(teams.Config{URL: strings.TrimSpace(named(c.URLSecret)), AllowPrivate: c.AllowPrivate})
	case "pagerduty":
		return pagerduty.New(pagerduty.Config{
			RoutingKey: strings.TrimSpace(named(c.RoutingKey)), URL: c.URL, AllowPrivate: c.AllowPrivate,
		})
	case "sns":
		return sns.New(sns.Config{
			Topic: c.Topic, AccessKeyID: named(c.AccessKeyID), SecretAccessKey: named(c.SecretAccessKey),
			SessionToken: named(c.SessionToken), URL: c.URL, AllowPrivate: c.AllowPrivate,
		})
	case "webpush":
		return webpush.New(webpush.Config{
			Contact: c.Contact, CA: c.CA, AllowPrivate: c.AllowPrivate, Key: key,
		})
	}
	return nil, fmt.Errorf("kind: %s is unknown", gatehouse.Quote(c.Kind))
}

// channelInfos describes the channels for the use cases.
func channelInfos(list []*notify.Configured) []gate.ChannelInfo {
	infos := make([]gate.ChannelInfo, len(list))
	for i, c := range list {
		infos[i] = gate.ChannelInfo{
			Name: c.Name, Kind: c.Kind(), Tenants: c.Tenants, Personal: c.Trait().Personal, Reaches: c.Reaches,
			Callback: c.Trait().Callback,
		}
		if w, ok := c.Channel.(*webpush.Channel); ok {
			infos[i].Endpoint = w.CheckEndpoint
		}
	}
	return infos
}

// notifier makes the notifier of people.
func (s *Server) notifier(metrics notify.Metrics) *notify.Notifier {
	routes := make([]notify.Route, len(s.config.Routes))
	for i, r := range s.config.Routes {
		routes[i] = notify.Route{
			Types: r.Types, Risk: gatehouse.RiskLevel(r.Risk), Groups: r.Groups, Channels: r.Channels,
			Fallback: r.Fallback, Targets: r.Targets, Amount: gatehouse.Decimal(r.Amount), Currency: r.Currency,
		}
		for _, kind := range r.Tell {
			routes[i].Tell = append(routes[i].Tell, gatehouse.NotificationKind(kind))
		}
	}
	return notify.New(s.Store, s.Hub, notify.Config{
		Channels: s.channels, Routes: routes, PublicURL: s.publicURL(), Reviews: s.Gate,
		DigestAfter: int(s.config.Digest.After), DigestEvery: s.config.Digest.Every.D(), Owner: newOwnerName(),
		DecideUpTo: s.Gate.SlackUpTo, Withdraw: s.Gate.WithdrawGone,
	}, metrics, s.Log)
}

// bounceKeys returns the keys that authenticate the envelope senders of mails; nil without a master key.
func bounceKeys(cfg *config.Config) ([][]byte, error) {
	m, err := masterKey(cfg)
	if m == nil || err != nil {
		return nil, err
	}
	return m.Derive("bounces")
}

// bounces makes the receiver of returned mails.
func bounces(n *Node, metrics notify.Metrics) *email.Bounces {
	b := &email.Bounces{Store: n.Store, Log: n.Log}
	for _, c := range n.channels {
		if ch, ok := c.Channel.(*email.Channel); ok {
			b.Channels = append(b.Channels, email.NamedChannel{Name: c.Name, Tenants: c.Tenants, Channel: ch})
			b.Failed = func(channel string) { metrics.Notified(channel, "bounced") }
		}
	}
	return b
}

// newSlackHandler makes the receiver of clicks in Slack, nil if no channel supports them.
func newSlackHandler(n *Node, metrics *prometheus.Registry) (*slack.Handler, error) {
	var channels []slack.NamedChannel
	for _, c := range n.channels {
		if ch, ok := c.Channel.(*slack.Channel); ok {
			channels = append(channels, slack.NamedChannel{Name: c.Name, Tenants: c.Tenants, Channel: ch})
		}
	}
	count, err := telemetry.DecisionCounter(metrics, "slack")
	if err != nil {
		return nil, err
	}
	return slack.NewHandler(slack.HandlerConfig{
		Gate: observedClicks{n.Gate, count, n.tracing}, Store: n.Store, Hints: n.Hub, Channels: channels,
		PublicURL: n.publicURL(), Owner: newOwnerName(), Log: n.Log,
	}), nil
}

// observedClicks counts and traces the decisions of clicks in Slack.
type observedClicks struct {
	slack.Gate
	count   func(gatehouse.DecisionResult)
	tracing *telemetry.Tracing
}

func (s observedClicks) CarryOutSlackClick(
	ctx context.Context, c *gatehouse.SlackClick,
) (result, said string, err error) {
	began := time.Now()
	result, said, err = s.Gate.CarryOutSlackClick(ctx, c)
	if err == nil {
		s.count(clickResult(result))
		s.tracing.Clicked(ctx, began, c, result)
	}
	return result, said, err
}

// clickResult classifies the result of a click: the code of an answer or of an error.
func clickResult(code string) gatehouse.DecisionResult {
	switch code {
	case gatehouse.Decided, gatehouse.VoteRecorded, gatehouse.AlreadyApproved, gatehouse.AlreadyRejected:
		return gatehouse.DecisionResultOf(code, false)
	}
	return gatehouse.RefusedResult(gatehouse.Code(code))
}
