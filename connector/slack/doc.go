// Package slack posts, edits and deletes messages of a Slack app's own bot, by
// the Web API (https://docs.slack.dev/reference/methods).
//
// Posting is not idempotent, and no method is conditional: every operation is of
// class C. A message that is posted carries the action's id as metadata, and is
// found by it in the channel's history. Before an edit and a delete the message
// is read and compared with the pre-image; between that and the call somebody
// with the app's token may still write.
//
// Slack stores another text than it is sent: it escapes &, < and >, marks links,
// and writes emoji by their names. Texts are compared without these; see plainText.
package slack
