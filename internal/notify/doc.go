// Package notify tells people what waits for them, and what happened to their requests.
//
// # From the log to a message
//
// The audit log serves as the outbox. An entry is written in the same transaction as the change
// that it describes, so nobody is notified of a change that did not happen, and no change is
// forgotten. Writing a proposal therefore costs the same whether or not channels are configured.
// The notifier reads each log in order. In one transaction, it stores a notification for each
// recipient and channel, and advances its position. The position is guarded: if two replicas read
// the same entries, one commits, and the other reads again.
//
// # From a message to a channel
//
// A notifier claims due messages under a lease, calls the channel, and records the answer, guarded
// by the generation of its claim. If a notifier stops between the call and the record, its lease
// expires and the message is sent again: a message is never lost, and may arrive twice. A repeated
// mail has the same Message-ID, and a repeated webhook the same webhook-id.
//
// Messages that have become irrelevant are muted and not sent: for example, when an approval was
// decided meanwhile, or when a person was disabled or may no longer answer.
//
// # Storms
//
// The number of messages per recipient, channel and window is limited. Messages beyond the limit
// are counted in a digest, which is sent at the end of the window. Receivers that are programs,
// such as webhooks, get every message.
//
// # Failures
//
// Retries follow [Schedule]. After three consecutive failures, or when more than a tenth of the recent messages
// failed at their first attempt, a channel counts as failing: the log records it, an alert goes to the next channel
// of each route, and so do new messages. A success ends this state and makes the waiting messages that have failed
// before due at once; in the second case, only a success while few recent messages have failed does so. A webhook
// without a success for five days, or whose receiver wants no more messages, is switched off. A channel whose
// receiver can stop unnoticed gets a test after a week without a message.
package notify
