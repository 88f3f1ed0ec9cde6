package feed

import (
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/gatehouse-dev/gatehouse"
)

// Config is the nats section of the configuration file. Without url, NATS is
// not used.
type Config struct {
	// URL is an address such as tls://user:password@host:4222, or several separated by commas.
	URL string `yaml:"url"`
	// Credentials is the path of a .creds file, if servers require one.
	Credentials string `yaml:"credentials"`
	// Prefix begins all subjects; gatehouse by default.
	Prefix string `yaml:"prefix"`
	// Stream is the event stream's name; GATEHOUSE_EVENTS by default.
	Stream string `yaml:"stream"`
	// MaxAge is how long a new stream keeps events, at least 10m; 7d by default.
	MaxAge gatehouse.Span `yaml:"max_age"`
	// Replicas is how many servers store the stream, 1 to 5; 1 by default.
	Replicas int `yaml:"replicas"`
	// Handoff hands each push to one replica, instead of waking all.
	Handoff bool `yaml:"handoff"`
}

const (
	defaultPrefix = "gatehouse"
	defaultStream = "GATEHOUSE_EVENTS"
	defaultMaxAge = gatehouse.Span(7 * 24 * time.Hour)
	minMaxAge     = gatehouse.Span(10 * time.Minute)
	// window is how long the stream remembers message ids: the default of NATS.
	window = 2 * time.Minute
)

var (
	prefixForm = regexp.MustCompile(`^[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*$`)
	streamForm = regexp.MustCompile(`^[A-Za-z0-9_-]+$`)
)

// WithDefaults fills in missing values.
func (c Config) WithDefaults() Config {
	if c.Prefix == "" {
		c.Prefix = defaultPrefix
	}
	if c.Stream == "" {
		c.Stream = defaultStream
	}
	if c.MaxAge == 0 {
		c.MaxAge = defaultMaxAge
	}
	if c.Replicas == 0 {
		c.Replicas = 1
	}
	return c
}

// Validate reports the first problem, with the key's name in the file.
func (c Config) Validate() error {
	c = c.WithDefaults()
	switch {
	case c.URL == "":
		return errors.New("nats.url: is required")
	case !plainURL(c.URL):
		return errURL
	case len(c.Prefix) > 64 || !prefixForm.MatchString(c.Prefix):
		return fmt.Errorf("nats.prefix: must be at most 64 letters, digits, _ and -, with dots between: %s",
			gatehouse.Quote(c.Prefix))
	case len(c.Stream) > 64 || !streamForm.MatchString(c.Stream):
		return fmt.Errorf("nats.stream: must be at most 64 letters, digits, _ and -: %s", gatehouse.Quote(c.Stream))
	case c.MaxAge < minMaxAge:
		return errors.New("nats.max_age: must be at least 10m")
	case c.Replicas < 1 || c.Replicas > 5:
		return errors.New("nats.replicas: must be 1 to 5")
	}
	return nil
}

// stream is the configuration for creating the event stream. docs/events.md
// explains it.
func (c Config) stream() jetstream.StreamConfig {
	return jetstream.StreamConfig{
		Name:        c.Stream,
		Description: "Gatehouse's audit log as CloudEvents: a feed, not the record.",
		Subjects:    []string{c.subjects()},
		Retention:   jetstream.LimitsPolicy,
		Storage:     jetstream.FileStorage,
		Compression: jetstream.S2Compression,
		Discard:     jetstream.DiscardOld,
		MaxAge:      c.MaxAge.D(),
		Duplicates:  window,
		Replicas:    c.Replicas,
		AllowDirect: true,
	}
}

// subjects matches the events of all tenants.
func (c Config) subjects() string { return c.Prefix + ".events.>" }

// requestTimeout bounds the time of connecting, of one write and of one request.
const requestTimeout = 5 * time.Second

// Connect returns a connection, whether or not a server answers; it first tries each address once. The connection
// retries forever and drops messages while disconnected, so that nothing accumulates and nothing old is sent later.
// The error is for settings that can never work. The caller must close the connection.
func Connect(c Config, log *slog.Logger) (*nats.Conn, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	var away outage
	options := []nats.Option{
		nats.Name("gatehouse"),
		nats.RetryOnFailedConnect(true),
		nats.MaxReconnects(-1),
		nats.IgnoreAuthErrorAbort(), // credentials may be fixed while the process runs
		nats.ReconnectWait(250 * time.Millisecond),
		nats.ReconnectJitter(250*time.Millisecond, time.Second),
		nats.ReconnectBufSize(-1),
		nats.Timeout(requestTimeout),
		nats.FlusherTimeout(requestTimeout),
		nats.PingInterval(10 * time.Second),
		nats.MaxPingsOutstanding(2),
		nats.ConnectHandler(func(*nats.Conn) { away.over(); log.Info("connected to NATS") }),
		nats.ReconnectHandler(func(*nats.Conn) { away.over(); log.Info("connected to NATS again") }),
		nats.ReconnectErrHandler(func(_ *nats.Conn, err error) {
			if err = redact(err, c.URL); away.news(err) {
				log.Warn("NATS cannot be reached; connecting is retried", "error", err)
			}
		}),
		nats.DisconnectErrHandler(func(_ *nats.Conn, err error) {
			if err != nil {
				log.Warn("NATS is disconnected; events wait in the log, and hints are dropped until it is back", "error", err)
			}
		}),
		nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) { log.Warn("NATS", "error", err) }),
	}
	if c.Credentials != "" {
		options = append(options, nats.UserCredentials(c.Credentials))
	}
	conn, err := nats.Connect(c.URL, options...)
	if err != nil {
		return nil, fmt.Errorf("nats: %w", redact(err, c.URL))
	}
	if !conn.IsConnected() {
		log.Warn("NATS does not answer yet; events wait in the log, and hints are dropped until it does")
	}
	return conn, nil
}

// outage remembers the logged reasons of failed connection attempts, of which
// there are several per second: each reason is logged once until an attempt
// succeeds.
type outage struct {
	mu   sync.Mutex
	told []string
}

// news reports whether err has not been logged yet. There are few different
// reasons; after 16 the rest is dropped.
func (o *outage) news(err error) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if slices.Contains(o.told, err.Error()) || len(o.told) >= 16 {
		return false
	}
	o.told = append(o.told, err.Error())
	return true
}

func (o *outage) over() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.told = nil
}

var errURL = errors.New(
	"nats.url: must be nats://, tls://, ws:// or wss:// with a host; in user and password, percent-encode every " +
		"character except letters, digits and - . _ ~ (@ as %40, / as %2F, , as %2C)")

// CheckURL returns an error if addresses are not well-formed. The error does not
// quote the addresses, which may contain a password.
func CheckURL(addresses string) error {
	if !plainURL(addresses) {
		return errURL
	}
	return nil
}

// plainURL reports whether addresses have only one interpretation. An unescaped
// password can be mistaken for a host, a port or another address, and those
// appear in error messages.
func plainURL(addresses string) bool {
	for i, address := range strings.Split(addresses, ",") {
		address = strings.TrimSpace(address)
		if !strings.Contains(address, "://") {
			if i > 0 && strings.Contains(address, "@") {
				return false // probably the end of a password with a comma
			}
			address = "nats://" + address
		}
		u, err := url.Parse(address)
		if err != nil || strings.Contains(u.Path+u.RawQuery+u.Fragment, "@") {
			return false
		}
		if !slices.Contains([]string{"nats", "tls", "ws", "wss"}, u.Scheme) || u.Hostname() == "" {
			return false // the client would take it for a NATS address and retry forever
		}
	}
	return true
}

// redact replaces an error if it contains an address that has a user, a password or a token.
func redact(err error, address string) error {
	for part := range strings.SplitSeq(address, ",") {
		if strings.Contains(part, "@") && strings.Contains(err.Error(), strings.TrimSpace(part)) {
			return errors.New("nats.url is malformed")
		}
	}
	return err
}
