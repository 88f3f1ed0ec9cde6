package notify

import (
	"context"
	"errors"
	"time"

	"github.com/gatehouse-dev/gatehouse"
)

// Channel sends messages to people or to a shared place, such as a chat channel. Its methods are called concurrently.
type Channel interface {
	// Kind is the configured kind, such as email.
	Kind() string
	// Trait describes the recipients of the channel.
	Trait() Trait
	// Reaches reports whether a person has an address on a personal channel.
	Reaches(p *gatehouse.Principal) bool
	// Send calls the channel once. If an error answer says what to do next, the error is a
	// [Refusal].
	Send(ctx context.Context, m *Message) (Sent, error)
}

// Keeper is a channel whose messages are kept up to date with their action.
type Keeper interface {
	Channel
	// Rewrite rewrites a posted message with a single call.
	Rewrite(ctx context.Context, ref string, m *Message) error
	// Shown is a hash of the message's content, without the remaining time.
	Shown(m *Message) string
	// Decides reports whether people can decide on the message itself.
	Decides() bool
	// Gone reports whether an error of Rewrite means that the message no longer exists.
	Gone(err error) bool
}

// Finder is a channel that can look for a message whose answer was lost.
type Finder interface {
	// Find returns the Ref of a message that was queued at a time; "" if it is not found.
	Find(ctx context.Context, id string, at time.Time) (ref string)
}

// Trait describes the recipients of a channel.
type Trait struct {
	// Personal channels send to each recipient; others have one shared place.
	Personal bool
	// Every sends every message without digests, because programs read them.
	Every bool
	// Private channels reach only the recipient: a question's message contains a link that is
	// signed for them.
	Private bool
	// Devices channels send to the devices of each recipient. The store knows the devices, and so
	// whom the channel reaches.
	Devices bool
	// Weekly channels get a test after a week without a message, because their receiver can stop working
	// unnoticed. They have one shared place.
	Weekly bool
	// Callback channels make the callbacks of proposals, and send nothing else.
	Callback bool
}

// Sent is the answer of a channel.
type Sent struct {
	// Delivered says that the message is known to have arrived; otherwise, only the next hop has
	// accepted it.
	Delivered bool
	// Ref is the channel's id of the message, "" if it returns none.
	Ref string
	// Shown is the hash of the posted content, "" if it is not known.
	Shown string
	// NextHeartbeat is the time until the next heartbeat.
	NextHeartbeat time.Duration
	// Devices are the outcomes on the recipient's devices. They count after a failure, too.
	Devices []DeviceOutcome
}

// DeviceOutcome is the outcome of a message for one device. Err is nil if the push service has
// accepted it; a Refusal with Gone means that the device no longer exists.
type DeviceOutcome struct {
	Device *gatehouse.Device
	Err    error
}

// Refusal is an error answer with instructions for what to do next.
type Refusal struct {
	// Final says that the same message will never be accepted.
	Final bool
	// Recipient says that the failure concerns only this recipient, or is temporary: the channel
	// itself works.
	Recipient bool
	// Gone says that the receiver wants no more messages: the channel is switched off.
	Gone bool
	// After is the wait that the receiver asks for; 0 if it names none.
	After time.Duration
	Err   error
	// Abandoned is the reason why the proposer of the action no longer waits; "" if it does.
	Abandoned string
}

func (r *Refusal) Error() string { return r.Err.Error() }

// Unwrap returns the cause.
func (r *Refusal) Unwrap() error { return r.Err }

// refusal is the Refusal in an error, or one without instructions.
func refusal(err error) *Refusal {
	var r *Refusal
	if errors.As(err, &r) {
		return r
	}
	return &Refusal{Err: err}
}

// Configured is a channel with its configured name.
type Configured struct {
	Name string
	// Tenants are the tenants that may use the channel.
	Tenants []string
	// Quiet are the channel's quiet hours, nil for none.
	Quiet *gatehouse.Quiet
	Channel
}
