// Package email sends mail by SMTP (RFC 5321).
//
// SMTP has no idempotency and nothing to read back, so the class is C. The
// Message-ID is made of the call's key, and so is the same for each attempt: a
// recipient's system may drop the second one, and a person finds the first.
//
// What is proven follows from how far the dialogue came. Before DATA nothing of the
// message was sent: not_sent, or terminal where the server refuses for good. An
// answer to the end of the data is the server's word. Everything else is ambiguous.
package email
