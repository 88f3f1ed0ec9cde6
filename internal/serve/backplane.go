package serve

import (
	"cmp"
	"errors"
	"log/slog"

	"github.com/nats-io/nats.go"

	"github.com/gatehouse-dev/gatehouse/internal/config"
	"github.com/gatehouse-dev/gatehouse/internal/feed"
	"github.com/gatehouse-dev/gatehouse/internal/notify/slackdev"
	"github.com/gatehouse-dev/gatehouse/internal/usecase"
	"github.com/gatehouse-dev/gatehouse/internal/wake"
	"github.com/gatehouse-dev/gatehouse/internal/wake/natswake"
	"github.com/gatehouse-dev/gatehouse/internal/wake/pgwake"
)

// Backplane is what replicas tell each other by, beside the store: hints that
// may be lost, and the feed of events for others. Nothing rests on it.
type Backplane struct {
	// caught takes mails and cards what Slack would show, in development mode, nil
	// otherwise; linkURL is where their links lead when the configuration has no
	// public_url.
	caught *mailCatcher
	cards  *slackdev.Workspace
	// development is set by development mode alone.
	development bool
	linkURL     string
	carriers    []wake.Carrier
	nats        *nats.Conn
	feed        feed.Config
}

// newBackplane makes the carriers: NATS where it is configured, else the
// database's own LISTEN and NOTIFY, else none. natsURL overrides the file's.
// No server has to answer now.
func newBackplane(cfg *config.Config, databaseURL, natsURL string, roles []Role, log *slog.Logger) (*Backplane, error) {
	b := &Backplane{}
	var err error
	if b.feed, err = natsConfig(cfg, natsURL); err != nil {
		return nil, err
	}
	if b.feed.URL == "" {
		if cfg.Callbacks.NATS != nil {
			return nil, errors.New("callbacks.nats: needs a cluster: see nats.url")
		}
		if databaseURL == "" {
			return b, nil
		}
		c, err := pgwake.New(databaseURL, log)
		if err != nil {
			return nil, err
		}
		b.carriers = []wake.Carrier{c}
		return b, nil
	}
	if b.nats, err = feed.Connect(b.feed, log); err != nil {
		return nil, err
	}
	var except []string
	if b.feed.Handoff {
		except = []string{usecase.TopicPush}
		b.carriers = append(b.carriers, natswake.NewHandoff(b.nats, b.feed.Prefix, has(roles, RoleDispatcher), log))
	}
	b.carriers = append(b.carriers, natswake.NewBroadcast(b.nats, b.feed.Prefix, log, except...))
	return b, nil
}

// natsConfig is the section nats of the file, with the address of a flag in place
// of its own; its URL is "" where neither names any.
func natsConfig(cfg *config.Config, natsURL string) (c feed.Config, err error) {
	if err := cfg.DecodeNATS(&c); err != nil {
		return c, err
	}
	c.URL = cmp.Or(natsURL, c.URL)
	if c.URL == "" {
		return c, nil
	}
	c = c.WithDefaults()
	return c, c.Validate()
}

// Close ends the connection to NATS, if there is one.
func (b *Backplane) Close() error {
	if b.nats != nil {
		b.nats.Close()
	}
	return nil
}
