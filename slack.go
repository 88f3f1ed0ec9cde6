package gatehouse

import (
	"context"
	"time"
)

// SlackIssuer is the prefix of a Slack user's issuer in [ExternalIdentity]. The id
// of the user's enterprise follows, or else of the workspace. The subject is the
// user's id.
const SlackIssuer = "slack:"

// SlackLinkTTL is how long a code that links a Slack user stays valid.
const SlackLinkTTL = 10 * time.Minute

// DigestPrefix is how many characters of a digest a card's button carries.
const DigestPrefix = 23

// SlackClick is one press of a button on a card in Slack. It is stored before Slack
// gets its answer, and carried out afterwards, once.
type SlackClick struct {
	ID        string
	Tenant    string
	CreatedAt time.Time
	// Key is unique: an interaction that Slack delivers again is stored once.
	Key Hash
	// Channel is the name in the configuration. SlackChannel and TS are Slack's ids of
	// channel and message.
	Channel, SlackChannel, TS string
	// Issuer and User identify who pressed, as in [ExternalIdentity].
	Issuer, User string
	// ActionID and Digest are the values on the button; Digest is the first
	// [DigestPrefix] characters.
	ActionID, Digest string
	// Choice is the decision; "" when the click decides nothing and the person only
	// gets Said.
	Choice DecisionKind
	// Reason is stored as the vote's notes.
	Reason string
	// Result is the outcome, "" before the click is carried out. Said is the reply
	// to the person in Slack.
	Result, Said string
	// Attempts counts the claims. DueAt is when the click is carried out, or when
	// the lease of a claimed click ends; nil when the click is finished.
	Attempts int
	DueAt    *time.Time
	// FinishedAt is nil until the click is carried out and the person has the reply, or
	// the reply is given up.
	FinishedAt *time.Time
	// Generation fences stale holders: each claim raises it by one.
	Generation int
	// LeaseOwner names the process that holds the lease, "" for none.
	LeaseOwner string
	// LastError is the last failure to carry the click out.
	LastError string
}

// PostedCard is a message in a channel. It shows the state of an action. Only the
// holder of the lease writes the message, from the stored state.
type PostedCard struct {
	Tenant string
	// Channel is the configured name.
	Channel  string
	ActionID string
	// Ref is the channel's id for the message.
	Ref string
	// Wanted counts the requests to write the card again. Shown is a hash of the
	// content last written.
	Wanted int64
	Shown  string
	// DueAt is when the card is written next, or when the lease of its writer ends;
	// nil when there is nothing to write.
	DueAt *time.Time
	// Attempts counts the claims.
	Attempts int
	// Generation fences stale holders: each claim raises it by one.
	Generation int
	// LeaseOwner names the process that holds the lease, "" for none.
	LeaseOwner string
	// LastError is the last failure to write the card, "" after a success.
	LastError string
	UpdatedAt time.Time
}

// SlackReader finds clicks and cards.
type SlackReader interface {
	FindSlackClick(id string) (*SlackClick, error)
	// OpenSlackClicks counts an action's clicks that decide and have not been
	// carried out.
	OpenSlackClicks(actionID string) (int, error)
	FindCard(channel, actionID string) (*PostedCard, error)
}

// SlackWriter writes clicks and cards.
type SlackWriter interface {
	// InsertSlackClick stores a click that is due now. It returns ErrConflict for a
	// known id or key.
	InsertSlackClick(c *SlackClick) error
	// UpdateSlackClick writes the mutable columns, guarded by the generation.
	UpdateSlackClick(c *SlackClick, generation int) error
	// PutCard stores a card that is due now; an existing card gets the new Ref.
	PutCard(c *PostedCard) error
	// TouchCards makes the cards of an action due now. A card that is being written
	// is due again afterwards.
	TouchCards(actionID string) error
	// ClaimCard claims a card, due or not. It returns ErrConflict when somebody
	// else holds the card or none exists.
	ClaimCard(channel, actionID, owner string, lease time.Duration) (*PostedCard, error)
	// UpdateCard writes the mutable columns and ends the claim, guarded by the
	// generation. A card that was touched since its claim is due now, whatever
	// DueAt says.
	UpdateCard(c *PostedCard, generation int) error
}

// SlackService links people to their Slack users.
type SlackService interface {
	// CreateSlackCode makes a one-time code. It links the Slack user who enters it
	// to the caller, a signed-in person with a fresh sign-in or with the edit token
	// in the request. The code works for [SlackLinkTTL].
	CreateSlackCode(ctx context.Context) (*SlackCode, error)
	// UnlinkSlack removes one of the caller's own links.
	UnlinkSlack(ctx context.Context, issuer, subject string) error
}

// SlackCode is a code that links a Slack user.
type SlackCode struct {
	// Code is the code to type in Slack, shown only here.
	Code string `json:"code"`
	// ExpiresAt is SlackLinkTTL after the code was made.
	ExpiresAt time.Time `json:"expires_at"`
}
