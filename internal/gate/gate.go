package gate

import (
	"cmp"
	"context"
	"log/slog"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/aside"
	"github.com/gatehouse-dev/gatehouse/internal/ring"
	"github.com/gatehouse-dev/gatehouse/internal/usecase"
)

// Targets gives the use cases access to the configured connectors.
type Targets interface {
	// Describe returns the connector's fingerprint, the lowest risk level that the connector allows for the
	// proposal, and how long the target keeps idempotency keys (0 means forever). The error has code invalid
	// if the tenant has no such connector or operation, and busy if the connector cannot be used now.
	Describe(tenant string, p *gatehouse.Proposal) (
		fingerprint string, floor gatehouse.RiskLevel, retention time.Duration, err error)
	// Declared returns the connector's declarations about a proposal's operation; nil if there are none.
	Declared(tenant string, p *gatehouse.Proposal) *gatehouse.Declared
	// Validate refuses an action that can never be carried out.
	Validate(a *gatehouse.Action) error
	// Lane returns the queue of pushes that external workers take for a connector; "" if the dispatcher
	// calls the connector itself.
	Lane(tenant, connector string) string
	// Checks reports whether Check can read the target of an action.
	Checks(a *gatehouse.Action) bool
	// ChecksAny reports whether Check can read the target of any action at all.
	ChecksAny() bool
	// Check compares the target with the proposal. checked is false when the connector cannot read the
	// target; err is set when the read failed.
	Check(ctx context.Context, a *gatehouse.Action) (
		matches bool, expected, actual gatehouse.JSON, checked bool, err error)
}

// ReversalChecker is an optional ability of Targets. Reverses reports whether the connector describes how to
// undo the effect of an operation.
type ReversalChecker interface {
	Reverses(tenant, connector, operation string) bool
}

// Redactor is an optional ability of Targets. It removes whole secrets of the configuration and of the
// tenant from text of the tenant that came from outside.
type Redactor interface {
	RedactText(tenant, s string) string
	RedactJSON(tenant string, j gatehouse.JSON) gatehouse.JSON
}

// Drainer sends due pushes of a tenant without waiting for the dispatcher's next poll.
type Drainer interface {
	Drain(ctx context.Context, tenant string, limit int) ([]gatehouse.DrainItem, error)
	// Class returns the class of an operation, A, B or C. The class decides what may follow an ambiguous
	// call; see package connector.
	Class(tenant, connector, operation string) string
}

// BreakerLister is an optional ability of a Drainer. Breakers lists the circuit breakers of a tenant's
// connectors that are not closed.
type BreakerLister interface {
	Breakers(tenant string) []gatehouse.BreakerState
}

// ConnectorLister is an optional ability of Targets. Names lists the connectors that serve a tenant.
type ConnectorLister interface{ Names(tenant string) []string }

// ConcurrencyLimiter is an optional ability of Targets. Concurrency returns how many calls of a connector this
// process makes at a time; 0 means no limit.
type ConcurrencyLimiter interface{ Concurrency(name string) int }

// Config has the settings that are not in the policy.
type Config struct {
	// Hold delays the dispatch of every approved action for which neither a rule nor the level of the policy sets a
	// hold. nil means 10 s for actions of L1 to L3 that people decided, and no delay for others.
	Hold *time.Duration
	// PolicySource is the policy that a tenant without a policy gets.
	PolicySource []byte
	// CheckTimeout bounds a read of the target at a decision; 3 s by default.
	CheckTimeout time.Duration
	// ApproverDelay is how long a person must have been an approver before the person's approval counts at
	// L5; 0 means no delay.
	ApproverDelay time.Duration
	// Retention is the age at which the archiver moves ended actions; 0 when there is no archiver.
	Retention time.Duration
	// AgentsSeeTenant lets agents read everything in their tenant.
	AgentsSeeTenant bool
	// Channels are the notifier's channels.
	Channels []ChannelInfo
	// Callbacks are the enabled types of callbacks.
	Callbacks []CallbackInfo
	// Master encrypts task tokens, the signing keys of links and of web push, and the keys that seal secrets. The keys
	// that sign checkpoints of the log are derived from it. nil disables all of these.
	Master *ring.Master
	// LogOrigin names this installation in checkpoints, such as gate.example.com; localhost by default.
	LogOrigin string
	// SecretUses returns, for each stored secret of a tenant, the connectors that use the secret. The caller
	// may change the map. A nil function means that no connector uses any.
	SecretUses func(tenant string) map[string][]string
	// CheckConnectors returns an error if this server cannot use a connectors file with the given content. A nil
	// function means that this server keeps no connectors in its store.
	CheckConnectors func(ctx context.Context, source string) error
	// LinkTTL is how long a signed link is valid. LinkRotation is the age at which a signing key is replaced.
	// See [gatehouse.DefaultLinkTTL].
	LinkTTL, LinkRotation time.Duration
}

// Gate implements the service interfaces of the domain over a store.
type Gate struct {
	*usecase.Runner
	targets  Targets
	drainer  Drainer
	policies *policyCache
	vetos    vetoCache
	config   Config
	// credentials is nil if the store is local.
	credentials *credentialCache
	decisions   decisionTally
	nonces      usedNonces
	previews    *previews
	// asideMoments, asideHeld and asideExpired hold the actions that failed in a sweep.
	asideMoments, asideHeld, asideExpired aside.Set[gatehouse.ActionRef]
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

// New returns a gate. SetDrainer sets its drainer later, because the dispatcher is the drainer and needs the
// gate.
func New(store gatehouse.Store, targets Targets, hints usecase.Hints, config Config, log *slog.Logger) *Gate {
	if config.CheckTimeout == 0 {
		config.CheckTimeout = 3 * time.Second
	}
	config.LinkTTL = cmp.Or(config.LinkTTL, gatehouse.DefaultLinkTTL)
	config.LinkRotation = cmp.Or(config.LinkRotation, gatehouse.DefaultLinkRotation)
	g := &Gate{
		Runner: &usecase.Runner{Store: store, Hints: hints, Log: log}, targets: targets, config: config,
		policies: newPolicyCache(), previews: newPreviews(config.CheckTimeout),
	}
	if _, remote := store.(gatehouse.Remote); remote {
		g.credentials = new(credentialCache)
	}
	return g
}

// Redactor returns the redactor of the configured secrets; nil if there is none.
func (g *Gate) Redactor() Redactor {
	r, _ := g.targets.(Redactor)
	return r
}

// SetDrainer sets the drainer for Drain. Call it before serving.
func (g *Gate) SetDrainer(d Drainer) { g.drainer = d }

// NewID returns a time-ordered id with a type prefix, such as act_0193….
func NewID(prefix string) string {
	id := uuid.Must(uuid.NewV7())
	return prefix + "_" + strings.ReplaceAll(id.String(), "-", "")
}

// HintPush announces a due push on the topic of all pushes. It also announces the push on the topic of its id and
// generation (0 for a new push), for subscribers that distribute single pushes.
func (g *Gate) HintPush(id string, generation int) {
	g.Hints.Notify(usecase.TopicPush)
	g.Hints.Notify(usecase.TopicPush + ":" + id + ":" + strconv.Itoa(generation))
}
