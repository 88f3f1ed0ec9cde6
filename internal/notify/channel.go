package notify

import (
	"context"
	"errors"
	"time"

	"github.com/gatehouse-dev/gatehouse"
)

// Channel sends messages to people or to a place. Its methods are called from
// several goroutines.
type Channel interface {
	// Kind is the configured kind, such as email.
	Kind() string
	// Trait says what kind of recipients the channel has.
	Trait() Trait
	// Reaches reports whether a person has an address on a personal channel.
	Reaches(p *gatehouse.Principal) bool
	// Send calls the channel once. An error is one of [Refusal] where the answer
	// says more than that it did not work.
	Send(ctx context.Context, m *Message) (Sent, error)
}

// Keeper is a channel whose messages are kept in line with their action.
type Keeper interface {
	Channel
	// Rewrite writes a posted message anew, once.
	Rewrite(ctx context.Context, ref string, m *Message) error
	// Shown is a hash of what a message shows, but for the time left.
	Shown(m *Message) string
	// Decides reports whether people decide on the message itself.
	Decides() bool
	// Gone reports whether an error of Rewrite says that there is nothing to write
	// any more.
	Gone(err error) bool
}

// Trait says what kind of recipients a channel has.
type Trait struct {
	// Personal channels send to each recipient; others have one place.
	Personal bool
	// Every message is sent, however many there are: programs read them.
	Every bool
	// Private channels reach the one recipient and nobody else: a message that asks
	// carries a link signed for them.
	Private bool
	// Callback channels make the callbacks of proposals, and send nothing else.
	Callback bool
}

// Sent is what a channel answered.
type Sent struct {
	// Delivered is whether the message is known to be where it is read; else the
	// next hop has accepted it.
	Delivered bool
	// Ref is what the channel calls the message, "" where it does not say.
	Ref string
	// Shown is the hash of what was posted, "" where that is not known.
	Shown string
	// Again is after how long a heartbeat is sent again.
	Again time.Duration
}

// Refusal is an answer that says what to do next.
type Refusal struct {
	// Final says that the same message will never be taken.
	Final bool
	// Recipient says that the trouble is the recipient's, or passes by itself: the
	// channel works.
	Recipient bool
	// Gone says that the receiver wants nothing more: the channel is switched off.
	Gone bool
	// After is how long the receiver wants to be left alone; 0 where it does not say.
	After time.Duration
	Err   error
	// Abandoned says that what proposed the action does not wait any more, and why;
	// "" otherwise.
	Abandoned string
}

func (r *Refusal) Error() string { return r.Err.Error() }

// Unwrap returns the cause.
func (r *Refusal) Unwrap() error { return r.Err }

// refusal is what an error says.
func refusal(err error) *Refusal {
	var r *Refusal
	if errors.As(err, &r) {
		return r
	}
	return &Refusal{Err: err}
}

// Configured is a channel under its name.
type Configured struct {
	Name string
	// Tenants are those that may use it.
	Tenants []string
	Channel
}
