// Package slack posts, edits and deletes messages of a Slack app's own bot, through the Web API
// (https://docs.slack.dev/reference/methods).
//
// Posting is not idempotent, and no method is conditional: every operation is of class C. A posted
// message carries the action's id as metadata, by which it is found in the channel's history.
// Before an edit or a delete, the message is read and compared with the pre-image; between that
// read and the call, another client with the app's token may still write.
//
// Slack stores a modified text: it escapes &, < and >, marks links, and replaces emoji by their
// names. The connector compares texts without these differences (see plainText). A comparison with a
// pre-image includes the names of emoji (see unchanged).
package slack
