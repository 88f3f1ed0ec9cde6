// Package feed publishes the entries of the audit log as CloudEvents to a NATS
// JetStream stream, for consumers that want to follow events without polling.
//
// # The promise
//
// Every entry of each tenant's log is published, in order, at least once, unless
// it is older than the stream's max_age. The stream is a feed, not the record:
// Gatehouse reads only its own position from it, decisions neither wait for it nor
// know about it, and whatever it has lost is published again from the log.
//
// # The position
//
// A tenant's position is stored only in the stream itself: the last message
// under the tenant's subject has its index in a header. Each message is
// published on the condition that it follows the one before:
//
//   - The first message of a burst carries Nats-Expected-Last-Subject-Sequence
//     for all subjects of the tenant. It is stored only if the tenant's last
//     message is still the one from which the position was read.
//   - Each further message carries Nats-Expected-Last-Msg-Id. It is stored only
//     directly after its predecessor.
//
// After its first message is stored, a burst is sent without waiting for each acknowledgement. Whatever is lost,
// delayed or refused on the way, the stored messages are a prefix of the burst. Because each entry is stored only
// after its predecessor, an untrimmed stream holds consecutive indexes of each tenant, from the first entry that
// was young enough, without gaps, and without duplicates even outside the window of Nats-Msg-Id.
//
// # Faults
//
//   - NATS is away: entries wait in the log. Nothing is kept in memory.
//   - An acknowledgement is lost: the position is read again.
//   - Several replicas publish: one of two that try the same entry is refused
//     and pauses for a second or two. The other one leads.
//   - The server lost acknowledged messages, as it may at a power failure: the
//     condition of the next burst fails, or the check after the reconnection
//     notices, and they are published again.
//   - The stream is deleted: it is created again and filled with entries that
//     are not older than its max_age.
//   - The server remembers an id whose message is gone because somebody deleted
//     or purged messages: that tenant waits until the duplicate window is over.
//   - An event is larger than the server accepts: that tenant's feed stops before it
//     and reports it.
//   - The stream has an entry that the log lacks, because the store was
//     restored from an older backup: that tenant's feed stops and reports it,
//     until the tenant's messages are purged. Continuing would leave a gap that
//     nobody notices.
package feed
