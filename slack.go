package gatehouse

import (
	"context"
	"time"
)

// SlackIssuer begins the issuer of an external identity that is a Slack user. What
// follows is the id of the user's enterprise, or of the workspace where there is no
// enterprise; the subject is the user's id.
const SlackIssuer = "slack:"

// SlackLinkTTL is how long a code that links a Slack user may wait to be used.
const SlackLinkTTL = 10 * time.Minute

// DigestPrefix is how many characters of a digest a card's button carries.
const DigestPrefix = 23

// SlackClick is one press of a button of a card in Slack, stored before Slack is
// answered. It is carried out afterwards, once.
type SlackClick struct {
	ID        string
	Tenant    string
	CreatedAt time.Time
	// Key is unique: the same interaction, delivered again, is stored once.
	Key Hash
	// Channel is the configured name, Place and TS what Slack calls the card.
	Channel, Place, TS string
	// Issuer and User are who pressed, as in [ExternalIdentity].
	Issuer, User string
	// ActionID and Digest are what the button carried; Digest is the first
	// [DigestPrefix] characters.
	ActionID, Digest string
	// Choice is what is decided; "" where Result is only to be answered.
	Choice DecisionKind
	Reason string
	// Result is what became of it, "" before it was carried out. Said is the answer
	// to the person.
	Result, Said string
	// Attempts counts the claims. DueAt is when the click is carried out, or the
	// lease of a claimed one ends; nil when it is finished.
	Attempts   int
	DueAt      *time.Time
	FinishedAt *time.Time
	// Generation fences stale holders: each claim raises it by one.
	Generation int
	LeaseOwner string
	LastError  string
}

// PostedCard is a message in a channel that is kept in line with its action. One
// holder of a lease writes it at a time, from the stored state.
type PostedCard struct {
	Tenant   string
	Channel  string
	ActionID string
	// Ref is what the channel calls the message.
	Ref string
	// Wanted counts the reasons to write it again. Shown is a hash of what it shows.
	Wanted int64
	Shown  string
	// DueAt is when it is written next, or the lease of its writer ends; nil when
	// there is nothing to write.
	DueAt      *time.Time
	Attempts   int
	Generation int
	LeaseOwner string
	LastError  string
	UpdatedAt  time.Time
}

// SlackReader finds clicks and cards.
type SlackReader interface {
	FindSlackClick(tenant, id string) (*SlackClick, error)
	// OpenSlackClicks counts the clicks on an action that decide and were not carried
	// out yet.
	OpenSlackClicks(tenant, actionID string) (int, error)
	// NextSlackClickAt returns when the next click is due, over all tenants; zero for
	// none.
	NextSlackClickAt() (time.Time, error)
	FindCard(tenant, channel, actionID string) (*PostedCard, error)
	// NextCardAt returns when the next card of a channel is due, over all tenants;
	// zero for none.
	NextCardAt(channel string) (time.Time, error)
}

// SlackWriter writes them.
type SlackWriter interface {
	// InsertSlackClick stores one that is due. A known id or key is ErrConflict.
	InsertSlackClick(c *SlackClick) error
	// ClaimSlackClicks takes up to limit that are due, or whose lease has ended, over
	// all tenants: it sets owner and lease end, and raises attempts and generation.
	ClaimSlackClicks(owner string, lease time.Duration, limit int) ([]*SlackClick, error)
	// UpdateSlackClick writes what can change, guarded by the generation.
	UpdateSlackClick(c *SlackClick, generation int) error
	// PurgeSlackClicks deletes up to limit that finished before olderThan.
	PurgeSlackClicks(olderThan time.Time, limit int) (int, error)
	// PutCard stores a card that is due now; one that is there gets the new Ref.
	PutCard(c *PostedCard) error
	// TouchCards makes the cards of an action due now. A card that is being written
	// is due again afterwards.
	TouchCards(tenant, actionID string) error
	// ClaimCards takes up to limit of a channel that are due, or whose lease has
	// ended, as ClaimSlackClicks does.
	ClaimCards(channel, owner string, lease time.Duration, limit int) ([]*PostedCard, error)
	// ClaimCard takes one, due or not; ErrConflict while somebody else holds it or
	// where it is not there.
	ClaimCard(tenant, channel, actionID, owner string, lease time.Duration) (*PostedCard, error)
	// UpdateCard writes what can change and ends the claim, guarded by the generation.
	// A card that was touched since it was claimed is due now, whatever DueAt says.
	UpdateCard(c *PostedCard, generation int) error
	// PurgeCards deletes up to limit that are not due and were written last before
	// olderThan.
	PurgeCards(olderThan time.Time, limit int) (int, error)
}

// SlackService links people to their Slack users.
type SlackService interface {
	// CreateSlackCode makes a one-time code that links whoever enters it in Slack to
	// the caller, a signed-in person whose sign-in is fresh or whose request carried
	// the edit token. It works for [SlackLinkTTL].
	CreateSlackCode(ctx context.Context) (*SlackCode, error)
	// UnlinkSlack removes a link of the caller's own.
	UnlinkSlack(ctx context.Context, issuer, subject string) error
}

// SlackCode links a Slack user.
type SlackCode struct {
	Code      string    `json:"code"`
	ExpiresAt time.Time `json:"expires_at"`
}
