package gatehouse

import (
	"context"
	"time"
)

// Review is one approval for one recipient, as a mail asks for it. It ends with the
// approval, when the recipient loses the right to decide, when the key of its link is
// revoked, and at ExpiresAt.
type Review struct {
	ID         string `json:"review_id"`
	Tenant     string `json:"tenant"`
	ActionID   string `json:"action_id"`
	ApprovalID string `json:"approval_id"`
	// Recipient is the id of the person whom the mail was sent to.
	Recipient     string    `json:"recipient"`
	RecipientName string    `json:"recipient_name,omitempty"`
	CreatedAt     time.Time `json:"created_at"`
	ExpiresAt     time.Time `json:"expires_at"`
	// Tries counts the wrong codes, MaxCodeTries at most.
	Tries int `json:"-"`
}

// MaxCodeTries is how many wrong codes a review takes. After that only signing in
// decides.
const MaxCodeTries = 5

// The times of links.
const (
	// DefaultLinkTTL is how long a link is good where the configuration says nothing,
	// MaxLinkTTL the longest.
	DefaultLinkTTL = 7 * 24 * time.Hour
	MaxLinkTTL     = 30 * 24 * time.Hour
	// DefaultLinkRotation is after how long a key is replaced.
	DefaultLinkRotation = 30 * 24 * time.Hour
	// DeviceTTL is how long a browser is known as one that its person has signed in
	// with. It is no longer than a session that has ended is kept.
	DeviceTTL = SessionKept
)

// ReviewState is how a review stands.
type ReviewState string

// The states of a review.
const (
	ReviewPending    ReviewState = "pending"
	ReviewDecided    ReviewState = "decided"
	ReviewExpired    ReviewState = "expired"
	ReviewSuperseded ReviewState = "superseded"
	ReviewRevoked    ReviewState = "revoked"
	// ReviewNotYours: the recipient may not decide it, or somebody else is signed in.
	ReviewNotYours ReviewState = "not_yours"
)

// ReviewProof is what a decision by link may be proven with beside the link.
type ReviewProof string

// The proofs.
const (
	ProofSession ReviewProof = "session"
	ProofDevice  ReviewProof = "device"
	ProofCode    ReviewProof = "code"
)

// OpenReview is a review as its link opens it.
type OpenReview struct {
	Review
	State ReviewState `json:"state"`
	// Detail says why the review cannot be decided, "" for one that can.
	Detail string `json:"detail,omitempty"`
	// Action is what is asked for; nil for a review that is revoked, or not yours.
	Action *Action `json:"action,omitempty"`
	// Person is the recipient.
	Person *Principal `json:"-"`
	// Proofs are what deciding takes, any one of them; none where it is decided in the
	// console only.
	Proofs []ReviewProof `json:"proofs,omitempty"`
	// Proven is set when the caller has signed in as the recipient, or with a device
	// that counts.
	Proven ReviewProof `json:"-"`
}

// ReviewDecision is an answer given by a link.
type ReviewDecision struct {
	Decision DecisionKind `json:"decision"`
	Reason   string       `json:"reason,omitempty"`
	// Code is that of the mail, "" for none; Device what the browser keeps of an
	// earlier sign-in.
	Code   string `json:"code,omitempty"`
	Device string `json:"-"`
}

// ReviewService opens and decides reviews. The token is the authority to open one;
// the caller in the context, who may be missing, is a person signed in.
type ReviewService interface {
	// OpenReview returns the review of a link, and changes nothing. device may be "".
	// A token that is not the review's, or whose key is not known, is an error with
	// code bad_token.
	OpenReview(ctx context.Context, id, token, device string) (*OpenReview, error)
	// DecideReview decides as the recipient, by the same rules as Decide. Its errors
	// are those besides: bad_token, link_expired, sign_in_required.
	DecideReview(ctx context.Context, id, token string, d ReviewDecision) (*Answer, error)
	// ReviewNonce makes the value of one form, bound to a cookie; TakeReviewNonce
	// takes it, once, and fails with code sign_in_required where it does not hold.
	ReviewNonce(ctx context.Context, id, token, cookie string) (string, error)
	TakeReviewNonce(ctx context.Context, id, token, cookie, nonce string) error
	// DeviceToken is what a browser keeps of a sign-in, "" where links are not signed.
	DeviceToken(ctx context.Context, s *Session) (string, error)
}

// ReviewLink is what a mail to one recipient carries.
type ReviewLink struct {
	ID, Token string
	// Code is printed in the mail's text; "" where no code decides.
	Code      string
	ExpiresAt time.Time
}

// LinkProof names the link that a decision came by.
type LinkProof struct {
	Review string
	// Key is the number of the key that signed it.
	Key   uint32
	Proof ReviewProof
}

// ReviewPath is the page of a review, below the console's address, with an answer
// preselected; "" for none.
func ReviewPath(id string, d DecisionKind) string {
	switch d {
	case Approve:
		return "/review/" + id + "/approve"
	case Reject:
		return "/review/" + id + "/reject"
	}
	return "/review/" + id
}

// ReviewReader finds reviews.
type ReviewReader interface {
	FindReview(tenant, id string) (*Review, error)
	// FindReviewOf finds the review of an approval for a recipient.
	FindReviewOf(tenant, approvalID, recipient string) (*Review, error)
}

// ReviewWriter writes them.
type ReviewWriter interface {
	// InsertReview stores a review; a second one of the same approval and recipient is
	// ErrConflict.
	InsertReview(r *Review) error
	// CountReviewTry raises tries, guarded by their being below MaxCodeTries.
	CountReviewTry(tenant, id string) error
	// PurgeReviews deletes up to limit, over all tenants, that expired before
	// olderThan.
	PurgeReviews(olderThan time.Time, limit int) (int, error)
}
