// Package notify tells people what waits for them and what became of what they
// asked for.
//
// # From the log to a message
//
// The outbox begins with the audit log: its entries are written in the transaction
// of what they tell, so that what did not happen is told to nobody, and what did is
// never forgotten. Writing a proposal therefore costs nothing more, whether or not
// channels are configured. The notifier reads each log in its order and, in one
// transaction, stores one notification for each recipient and channel and moves its
// position on. The position is guarded: of two replicas one wins, and the other
// reads again.
//
// # From a message to a channel
//
// A notifier claims due messages under a lease, calls the channel, and records the
// answer, guarded by the generation of its claim. A notifier that stops between the
// call and the record leaves a lease that ends, and the message is sent again: a
// message is never lost, and may arrive twice. A mail then has the same Message-ID,
// and a webhook the same webhook-id.
//
// What has nothing left to tell is muted and not sent: an approval that was decided
// meanwhile, a person who was disabled or may no longer answer.
//
// # Storms
//
// A recipient gets a bounded number of messages on a channel in a window; what is
// beyond is counted in a digest, which is sent once the window is over. Places that
// programs read, such as webhooks, get every message.
//
// # Failures
//
// Retries follow [Schedule]. Three failures of a channel in a row make it failing:
// the log says so, an alert goes to the next channel of each route, and new messages
// go there too. The first success ends that, and makes what waits due at once.
package notify
