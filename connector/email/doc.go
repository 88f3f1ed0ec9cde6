// Package email sends mail by SMTP (RFC 5321).
//
// SMTP has no idempotency and nothing to read back, so the class is C. The Message-ID is derived
// from the call's key, so it is the same for each attempt: a recipient's system may drop a
// duplicate, and a person can find the first mail.
//
// The phase of the dialogue determines what a failure proves. Before DATA, no part of the message
// was sent: not_sent, or terminal if the server refuses permanently. After the data, the server's answer
// decides: 4xx is transient, 5xx is terminal. Without a valid answer there, the outcome is ambiguous. A
// missing answer to QUIT does not matter.
package email
