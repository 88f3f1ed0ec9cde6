package app

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/ring"
)

// Targets is what the use cases ask of the configured connectors.
type Targets interface {
	// Describe returns the connector's fingerprint, the risk floor of the
	// proposal, and how long the target keeps idempotency keys (0: for ever).
	// An unknown connector or operation, or one that does not serve the
	// tenant, is an error with code invalid.
	Describe(tenant string, p *gatehouse.Proposal) (fingerprint string, floor gatehouse.RiskLevel, retention time.Duration, err error)
	// Validate refuses an action that can never be carried out.
	Validate(a *gatehouse.Action) error
	// Check compares the target with the proposal. checked is false when the
	// connector cannot; err when the target did not answer.
	Check(ctx context.Context, a *gatehouse.Action) (matches bool, expected, actual gatehouse.JSON, checked bool, err error)
}

// Checks is what Targets may tell besides: whether Check asks the target at all.
type Checks interface {
	Checks(a *gatehouse.Action) bool
	// ChecksAny reports whether there is a connector with a target that Check asks.
	ChecksAny() bool
}

// Reverses is what Targets may tell besides: whether an operation says how to
// undo what it has done.
type Reverses interface {
	Reverses(tenant, connector, operation string) bool
}

// Redactor is what Targets may do besides: take the secrets of the configuration
// out of what came from outside.
type Redactor interface {
	RedactText(s string) string
	RedactJSON(j gatehouse.JSON) gatehouse.JSON
}

// Hints spreads lossy wake-ups.
type Hints interface {
	Notify(topic string)
	// Subscribe returns a channel that receives after a Notify on any of the
	// topics, and a function that ends the subscription.
	Subscribe(topics ...string) (<-chan struct{}, func())
}

// Drainer carries out a tenant's due pushes now.
type Drainer interface {
	Drain(ctx context.Context, tenant string, limit int) ([]gatehouse.DrainItem, error)
	// Class tells, as A, B or C, what may be done after an ambiguous call.
	Class(tenant, connector, operation string) string
}

// Breaking is what a Drainer may tell besides: the breakers that are not closed.
type Breaking interface {
	Breakers() []gatehouse.BreakerState
}

// Named is what Targets may tell besides: the names of those that serve a tenant.
type Named interface{ Names(tenant string) []string }

// The topics of hints. An action's own topic is its id.
const (
	TopicPush  = "push"
	TopicAudit = "audit"
)

// TopicLog is the topic of one tenant's log: hinted at when entries were
// numbered, or a run changed in what has no entry, and never by what another
// tenant does.
func TopicLog(tenant string) string { return "log:" + tenant }

// Config sets what the policy leaves open.
type Config struct {
	// Hold rests every approval before dispatch where no rule says otherwise;
	// nil means 10 s for L1-L3 decided by people and none for the rest.
	Hold *time.Duration
	// PolicySource is stored for a tenant that has no policy yet.
	PolicySource []byte
	// CheckTimeout bounds reading the target at decide; 3 s by default.
	CheckTimeout time.Duration
	// ApproverDelay is how long somebody has to have been an approver to count at
	// L5; 0 for no time.
	ApproverDelay time.Duration
	// Retention is what the archiver was given; 0 for none.
	Retention time.Duration
	// AgentsSeeTenant lets agents read all of their tenant.
	AgentsSeeTenant bool
	// Channels are those that the notifier sends over.
	Channels []ChannelInfo
	// Master seals the keys that sign links; nil for no links.
	Master *ring.Master
	// LinkTTL is how long a link is good, LinkRotation after how long a key is
	// replaced; see [gatehouse.DefaultLinkTTL].
	LinkTTL, LinkRotation time.Duration
}

// Gate implements the service interfaces of the domain over a store.
type Gate struct {
	store    gatehouse.Store
	targets  Targets
	hints    Hints
	drainer  Drainer
	policies *policyCache
	vetos    vetoCache
	config   Config
	log      *slog.Logger
	// remembered are callers, where the store is distant.
	remembered *remembered
	decisions  decisionTally
	nonces     usedNonces
}

var (
	_ gatehouse.ActionService   = (*Gate)(nil)
	_ gatehouse.DispatchService = (*Gate)(nil)
	_ gatehouse.AdminService    = (*Gate)(nil)
	_ gatehouse.PolicyService   = (*Gate)(nil)
	_ gatehouse.AuditService    = (*Gate)(nil)
	_ gatehouse.InsightService  = (*Gate)(nil)
	_ gatehouse.LinkKeyService  = (*Gate)(nil)
	_ gatehouse.ReviewService   = (*Gate)(nil)
)

// New makes a gate. drainer may be set later with SetDrainer, since the
// dispatcher needs the gate's authority checks itself.
func New(store gatehouse.Store, targets Targets, hints Hints, config Config, log *slog.Logger) *Gate {
	if config.CheckTimeout == 0 {
		config.CheckTimeout = 3 * time.Second
	}
	config.LinkTTL = cmp.Or(config.LinkTTL, gatehouse.DefaultLinkTTL)
	config.LinkRotation = cmp.Or(config.LinkRotation, gatehouse.DefaultLinkRotation)
	g := &Gate{
		store: store, targets: targets, hints: hints, config: config, log: log,
		policies: newPolicyCache(),
	}
	if _, far := store.(gatehouse.Distant); far {
		g.remembered = new(remembered)
	}
	return g
}

// distant reports whether each question to the store costs a round trip: then
// as much as possible is asked at once, in the transaction that acts on it.
func (g *Gate) distant() bool { return g.remembered != nil }

// checks reports whether Check may have to ask the action's target.
func (g *Gate) checks(a *gatehouse.Action) bool {
	c, told := g.targets.(Checks)
	return !told || c.Checks(a)
}

// checksAny reports whether Check may have to ask any target.
func (g *Gate) checksAny() bool {
	c, told := g.targets.(Checks)
	return !told || c.ChecksAny()
}

// SetDrainer sets what carries out pushes for Drain. Call it before serving.
func (g *Gate) SetDrainer(d Drainer) { g.drainer = d }

// NewID returns a time-ordered id with a type prefix, such as act_0193….
func NewID(prefix string) string {
	id := uuid.Must(uuid.NewV7())
	return prefix + "_" + strings.ReplaceAll(id.String(), "-", "")
}

// errStale says that what was read before the transaction has moved.
var errStale = errors.New("app: read before the transaction is stale")

// maxRestarts bounds how often a use case starts again on conflicts.
const maxRestarts = 8

// update runs a use case's transaction. prepare is run before each try, for
// what belongs outside the transaction; it may be nil.
func (g *Gate) update(ctx context.Context, prepare func() error, fn func(gatehouse.Tx) error) error {
	for range maxRestarts {
		if prepare != nil {
			if err := prepare(); err != nil {
				return err
			}
		}
		err := g.store.Update(ctx, fn)
		var ahead *unjudged
		switch {
		case errors.As(err, &ahead):
			if err := ahead.Judge(ctx); err != nil {
				return err
			}
		case errors.Is(err, errStale), errors.Is(err, gatehouse.ErrConflict):
			if ctx.Err() != nil {
				return ctx.Err()
			}
		case errors.Is(err, gatehouse.ErrBusy):
			return busy(err)
		default:
			return err
		}
	}
	return busy(gatehouse.ErrConflict)
}

func busy(cause error) error {
	e := gatehouse.E(gatehouse.CodeBusy, "the store is busy; try again").Because(cause)
	e.RetryAfter = 1
	return e
}

// notFound maps the store's error to the outside's.
func notFound(err error, what string) error {
	if errors.Is(err, gatehouse.ErrNotFound) {
		return gatehouse.E(gatehouse.CodeNotFound, "no such %s", what)
	}
	return err
}

// hintPush hints that a new push, of generation 0, is due: to everybody, and
// under a topic of its own to whoever hands pushes out one by one.
func (g *Gate) hintPush(id string) {
	g.hints.Notify(TopicPush)
	g.hints.Notify(TopicPush + ":" + id + ":0")
}

func timePtr(t time.Time) *time.Time { return &t }
