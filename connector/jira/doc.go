// Package jira changes issues of Jira Cloud by its REST API, version 3
// (https://developer.atlassian.com/cloud/jira/platform/rest/v3/).
//
// Jira has no idempotency key and no conditional write: two create calls make two
// issues. So every operation is of class C, and each
//
//  1. waits for this process's other calls for the same issue;
//  2. reads the issue, and refuses a mismatch with the proposal;
//  3. writes, once;
//  4. compares the result with the approved change: the answer for a comment, otherwise
//     the issue as read again.
//
// A create searches for an earlier call's issue instead of the second step. A found issue
// or comment is compared with the approved one, too.
//
// Between the second and the third step another client may write. A new issue has the
// label gatehouse-KEY, and a comment the property gatehouse, by which they are found
// again. Jira's search index lags behind by seconds, so an empty result proves nothing.
//
// Texts become documents of plain paragraphs (Atlassian Document Format): nothing in
// them is interpreted as markup, a link or a mention.
package jira
