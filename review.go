package gatehouse

import (
	"context"
	"time"
)

// Review asks one recipient, by mail, to answer one approval. It ends with the
// approval, when the recipient loses the right to decide, when the key of its link
// is revoked, and at ExpiresAt.
type Review struct {
	ID       string `json:"review_id"`
	Tenant   string `json:"tenant"`
	ActionID string `json:"action_id"`
	// ApprovalID is the id of the approval to answer.
	ApprovalID string `json:"approval_id"`
	// Recipient is the id of the person to whom the mail was sent.
	Recipient string `json:"recipient"`
	// RecipientName is the name of Recipient; the store adds it to what it reads.
	RecipientName string    `json:"recipient_name,omitempty"`
	CreatedAt     time.Time `json:"created_at"`
	// ExpiresAt is the end of the question, or of the link if that is earlier.
	ExpiresAt time.Time `json:"expires_at"`
	// Tries counts the codes that were tried, right or wrong, at most MaxCodeTries.
	Tries int `json:"-"`
}

// MaxCodeTries is how many codes can be tried for a review. After that, deciding needs
// another proof.
const MaxCodeTries = 5

// The durations of links and recognized devices.
const (
	// DefaultLinkTTL is how long a link is valid when the configuration sets
	// nothing, MaxLinkTTL the longest time that it can set.
	DefaultLinkTTL = 7 * 24 * time.Hour
	MaxLinkTTL     = 30 * 24 * time.Hour
	// DefaultLinkRotation is the age at which a link key is replaced when the
	// configuration sets nothing.
	DefaultLinkRotation = 30 * 24 * time.Hour
	// DeviceTTL is how long a browser is recognized after its person's sign-in. It
	// is at most SessionKept, because a device token is checked against its stored
	// session.
	DeviceTTL = SessionKept
)

// ReviewState is the state of a review.
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

// ReviewProof is a proof of identity that a decision by link needs besides the link.
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
	// State is pending, or the reason why the caller cannot answer by this link.
	State ReviewState `json:"state"`
	// Detail says why the review cannot be decided; "" when it can, and when State is
	// decided.
	Detail string `json:"detail,omitempty"`
	// Action is the action in question; nil for a review that is revoked, or not
	// yours.
	Action *Action `json:"action,omitempty"`
	// Person is the recipient.
	Person *Principal `json:"-"`
	// Proofs are the accepted proofs: deciding needs any one of them. Proofs is empty
	// when nobody can decide by this link: State is not pending, the recipient has
	// voted, or the level is decided in the console only.
	Proofs []ReviewProof `json:"proofs,omitempty"`
	// Recognized is set when the caller is the recipient, by a session or an API key, or
	// uses a recognized device. Proven equals Recognized where that proof is enough to
	// decide.
	Recognized ReviewProof `json:"-"`
	Proven     ReviewProof `json:"-"`
}

// ReviewDecision is an answer given by a link.
type ReviewDecision struct {
	// Decision is approved or rejected.
	Decision DecisionKind `json:"decision"`
	// Reason is stored as the vote's notes.
	Reason string `json:"reason,omitempty"`
	// Code is the mail's code, "" for none; Device the token that the browser keeps
	// from an earlier sign-in.
	Code   string `json:"code,omitempty"`
	Device string `json:"-"`
}

// ReviewService opens and decides reviews. The token authorizes opening a review. The
// caller in the context, who may be missing, has signed in or sent an API key.
type ReviewService interface {
	// OpenReview returns the review of a link, and changes nothing. device may be
	// "". A token that does not belong to the review, or whose key is unknown, is
	// an error with code bad_token.
	OpenReview(ctx context.Context, id, token, device string) (*OpenReview, error)
	// ReviewOpened records, once, that the recipient's browser has opened the review. It
	// fails with code sign_in_required unless the caller has signed in as the recipient,
	// or device is recognized.
	ReviewOpened(ctx context.Context, id, token, device string) error
	// DecideReview decides as the recipient, by the same rules as Decide. It adds
	// the error codes bad_token, link_expired and sign_in_required.
	DecideReview(ctx context.Context, id, token string, d ReviewDecision) (*Answer, error)
	// ReviewNonce makes a form value that is bound to a cookie. TakeReviewNonce accepts
	// a value once in each process. It fails with code sign_in_required for a value that
	// was used in this process before, and for an invalid one.
	ReviewNonce(ctx context.Context, id, token, cookie string) (string, error)
	TakeReviewNonce(ctx context.Context, id, token, cookie, nonce string) error
	// DeviceToken returns the token that a browser keeps from a sign-in; "" where links
	// are not signed, or without a link key that the server can open.
	DeviceToken(ctx context.Context, s *Session) (string, error)
}

// ReviewLink is the link in a mail to one recipient.
type ReviewLink struct {
	// ID is the review's id, Token the link's token.
	ID, Token string
	// Code is printed in the mail's text; "" where codes cannot decide.
	Code string
	// ExpiresAt is the review's.
	ExpiresAt time.Time
}

// LinkProof names the link of a decision.
type LinkProof struct {
	// Review is the review's id.
	Review string
	// Key is the number of the key that signed the link.
	Key uint32
	// Proof is the proof that was given besides the link.
	Proof ReviewProof
}

// ReviewPath returns the path of a review's page, below the console's address, with
// an answer preselected; "" preselects none.
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
	FindReview(id string) (*Review, error)
	// FindReviewOf finds the review of an approval for a recipient.
	FindReviewOf(approvalID, recipient string) (*Review, error)
}

// ReviewWriter writes reviews.
type ReviewWriter interface {
	// InsertReview stores a review; a second one of the same approval and recipient fails
	// with ErrConflict.
	InsertReview(r *Review) error
	// CountReviewTry adds one to tries; at MaxCodeTries it fails with ErrConflict.
	CountReviewTry(id string) error
	// MarkReviewOpened stores when the recipient's browser first opened the review;
	// a second time fails with ErrConflict.
	MarkReviewOpened(id string) error
}
