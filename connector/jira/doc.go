// Package jira changes issues of Jira Cloud by its REST API, version 3
// (https://developer.atlassian.com/cloud/jira/platform/rest/v3/).
//
// Jira has no idempotency key and no conditional write: creating twice makes two
// issues. So every operation is of class C, and each
//
//  1. takes turns with the other calls of this process for the same issue;
//  2. reads the issue, and refuses when it is not as the proposal says;
//  3. writes, once;
//  4. reads again what was written, and compares it with what was approved.
//
// Between the second and the third step somebody else may write. A new issue has the
// label gatehouse-KEY, a comment the property gatehouse: by these they are found
// again. Jira's search is late by seconds, so that nothing found proves nothing.
//
// Texts become documents of plain paragraphs (Atlassian Document Format): nothing in
// them is markup, a link or a mention.
package jira
