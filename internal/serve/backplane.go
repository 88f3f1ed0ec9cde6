package serve

import (
	"cmp"
	"errors"
	"log/slog"
	"net"

	"github.com/nats-io/nats.go"

	"github.com/gatehouse-dev/gatehouse/internal/config"
	"github.com/gatehouse-dev/gatehouse/internal/feed"
	"github.com/gatehouse-dev/gatehouse/internal/notify/slackdev"
	"github.com/gatehouse-dev/gatehouse/internal/usecase"
	"github.com/gatehouse-dev/gatehouse/internal/wake"
	"github.com/gatehouse-dev/gatehouse/internal/wake/natswake"
	"github.com/gatehouse-dev/gatehouse/internal/wake/pgwake"
)

// Backplane connects replicas, in addition to the store: it carries hints, which
// may be lost, and the feed of events for other systems. No result depends on it. For development mode
// and the demo, it also has the catchers of messages and the listener.
type Backplane struct {
	// caught catches the mails of development mode and of the demo, cards the Slack messages of
	// development mode. Each is nil if such messages are sent.
	caught *mailCatcher
	cards  *slackdev.Workspace
	// development is true only in development mode.
	development bool
	// linkURL is the base URL of links in messages if the configuration has no public_url.
	linkURL string
	// listener listens on the port that was taken before the node was opened; nil for none.
	listener net.Listener
	carriers []wake.Carrier
	nats     *nats.Conn
	feed     feed.Config
}

// newBackplane connects to NATS if it is configured, else uses LISTEN and NOTIFY of the
// database, else nothing. natsURL overrides the address in the file. The servers need not be
// reachable yet.
func newBackplane(cfg *config.Config, databaseURL, natsURL string, roles []Role, log *slog.Logger) (*Backplane, error) {
	b := &Backplane{}
	var err error
	if b.feed, err = natsConfig(cfg, natsURL); err != nil {
		return nil, err
	}
	if b.feed.URL == "" {
		if cfg.Callbacks.NATS != nil {
			return nil, errors.New("callbacks.nats: needs NATS servers: set nats.url")
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

// natsConfig is the section nats of the file. The address of the flag, if any,
// replaces that of the file; URL is "" if there is neither.
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
