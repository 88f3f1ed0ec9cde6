// Package feed publishes the audit log's entries as CloudEvents to a NATS
// JetStream stream, for whoever wants to follow what happens without asking.
//
// # The promise
//
// Of each tenant's log the stream holds every entry, in order, at least once.
// It is a feed and not a record: nothing in Gatehouse reads it, decisions
// neither wait for it nor know of it, and what it lost it gets again from the
// log.
//
// # Where the feed stands
//
// The position is kept nowhere but in the stream: it is the index, in a
// header, of the last message below the tenant's subject. Each message is
// published under the condition that it follows the one before:
//
//   - The first of a burst carries Nats-Expected-Last-Subject-Sequence for all
//     the tenant's subjects: it is stored only if the tenant's last message is
//     still the one from which the position was read.
//   - Each further one carries Nats-Expected-Last-Msg-Id: it is stored only
//     right behind its predecessor.
//
// So a burst, once its first message is stored, travels without waiting for
// each acknowledgement, and is stored as a prefix of itself, whatever is lost,
// delayed or refused on the way. As
// each entry is stored only behind the one before it, a stream that was not
// trimmed has the indexes 0, 1, 2, … of each tenant, without gaps and even
// without duplicates, beyond what Nats-Msg-Id does within its window.
//
// # What happens when
//
//   - NATS is away: entries wait in the log. Nothing is kept in memory.
//   - An acknowledgement is lost: the position is read anew.
//   - Several replicas publish: one of two that try the same entry is refused,
//     and stands back for a second or two. The other leads.
//   - The server lost messages that it had acknowledged, as it may at a power
//     failure: the condition of the next burst fails, or the check after the
//     reconnection sees it, and they are published again.
//   - The stream is deleted: it is made again, and filled with what is not
//     older than its max_age.
//   - The server remembers an id whose message is gone (somebody deleted or
//     purged messages): that tenant waits until the duplicate window is over.
//   - The stream has an entry that the log has not (the store was restored
//     from an older backup): that tenant's feed stops and says so, until its
//     messages are purged. To go on would make a gap that nobody sees.
package feed
