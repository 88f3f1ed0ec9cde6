package gate

import (
	"cmp"
	"context"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/ring"
	"github.com/gatehouse-dev/gatehouse/internal/usecase"
)

// Targets is the use cases' view of the configured connectors.
type Targets interface {
	// Describe returns the connector's fingerprint, the risk floor of the proposal,
	// and how long the target keeps idempotency keys (0: forever). An unknown
	// connector or operation, or one that does not serve the tenant, is an error
	// with code invalid.
	Describe(tenant string, p *gatehouse.Proposal) (fingerprint string, floor gatehouse.RiskLevel, retention time.Duration,
		err error)
	// Declared returns the connector's declarations about a proposal's operation; nil for nothing.
	Declared(tenant string, p *gatehouse.Proposal) *gatehouse.Declared
	// Validate refuses an action that can never be carried out.
	Validate(a *gatehouse.Action) error
	// Lane returns "" for a connector that the dispatcher calls, else the lane of its outside workers.
	Lane(tenant, connector string) string
	// Checks reports whether Check asks the action's target, ChecksAny whether it asks any target.
	Checks(a *gatehouse.Action) bool
	ChecksAny() bool
	// Check compares the target with the proposal. checked is false when the
	// connector cannot check; err is set when the target did not answer.
	Check(ctx context.Context, a *gatehouse.Action) (matches bool, expected, actual gatehouse.JSON, checked bool,
		err error)
}

// Reverses is an optional ability of Targets: it tells whether an operation
// describes how to undo its effect.
type Reverses interface {
	Reverses(tenant, connector, operation string) bool
}

// Redactor is an optional ability of Targets: it removes the secrets of the
// configuration from text that came from outside.
type Redactor interface {
	RedactText(s string) string
	RedactJSON(j gatehouse.JSON) gatehouse.JSON
}

// Drainer sends a tenant's due pushes now.
type Drainer interface {
	Drain(ctx context.Context, tenant string, limit int) ([]gatehouse.DrainItem, error)
	// Class returns the operation's class, A, B or C: what may be done after an
	// ambiguous call.
	Class(tenant, connector, operation string) string
}

// Breaking is an optional ability of a Drainer: it lists the breakers that are not
// closed, as a tenant may see them.
type Breaking interface {
	Breakers(tenant string) []gatehouse.BreakerState
}

// Named is an optional ability of Targets: it lists the names of the connectors
// that serve a tenant.
type Named interface{ Names(tenant string) []string }

// Limited is an optional ability of Targets: it returns how many calls of a connector this
// process makes at a time; 0 is no limit.
type Limited interface{ Concurrency(name string) int }

// Config has the settings beside the policy.
type Config struct {
	// Hold delays the dispatch of every approval where no rule sets a hold; nil
	// means 10 s for L1-L3 decided by people and none for the rest.
	Hold *time.Duration
	// PolicySource is the first policy of a tenant that has none.
	PolicySource []byte
	// CheckTimeout bounds reading the target at decide; 3 s by default.
	CheckTimeout time.Duration
	// ApproverDelay is how long a person has to have been an approver to count at
	// L5; 0 for no delay.
	ApproverDelay time.Duration
	// Retention is the archiver's retention; 0 when there is no archiver.
	Retention time.Duration
	// AgentsSeeTenant lets agents read everything in their tenant.
	AgentsSeeTenant bool
	// Channels are the channels that the notifier uses.
	Channels []ChannelInfo
	// Callbacks are the types of callbacks that are switched on.
	Callbacks []CallbackInfo
	// Master seals the keys that sign links, the keys of secrets, and task tokens; nil
	// disables all three.
	Master *ring.Master
	// SecretUses returns which connectors use a tenant's secrets of the store, by
	// secret; the caller may change the map. Nil means none.
	SecretUses func(tenant string) map[string][]string
	// CheckConnectors says why this server cannot use a text of connectors; nil for a gate
	// without connectors in the store.
	CheckConnectors func(ctx context.Context, source string) error
	// LinkTTL is how long a link is valid, LinkRotation the age at which a key is
	// replaced; see [gatehouse.DefaultLinkTTL].
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
	// prepared has the tenants whose last approval was prepared outside the transaction: the next one
	// is read ahead. So only the first approval after a change of the policy runs its transaction twice.
	prepared sync.Map
	// credentials is nil unless the store is remote.
	credentials *credentialCache
	decisions   decisionTally
	nonces      usedNonces
	previews    *previews
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

// New makes a gate. The drainer is set later with SetDrainer, since the dispatcher
// itself needs the gate's authority checks.
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
	if _, far := store.(gatehouse.Remote); far {
		g.credentials = new(credentialCache)
	}
	return g
}

// Redactor returns the redactor of the configuration's secrets, nil for none.
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

// HintPush announces a new push of generation 0: on the general topic, and on the
// push's own topic for subscribers that hand out single pushes.
func (g *Gate) HintPush(id string) {
	g.Hints.Notify(usecase.TopicPush)
	g.Hints.Notify(usecase.TopicPush + ":" + id + ":0")
}
