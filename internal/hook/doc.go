// Package hook verifies what calls a workflow's webhook. No key is asked for:
// the signature is the authority, and what is signed is the body as it came,
// byte for byte.
//
// # Kinds
//
// github: X-Hub-Signature-256 is "sha256=" and the hexadecimal HMAC-SHA256 of
// the body (https://docs.github.com/en/webhooks/using-webhooks/validating-webhook-deliveries).
// X-GitHub-Delivery names the delivery and X-GitHub-Event the event; neither is
// signed, and no time is. Who can replay a delivery can give it another name: a
// workflow that must not run twice for it takes its ref from the body.
//
// servicenow: ServiceNow documents no signature of outbound webhooks; a
// business rule or a flow sends what its author wrote. What it does document is
// the header by which its own REST endpoints are called with an HMAC:
// x-sn-hmac-signature-256, by default a base64 HMAC-SHA256
// (https://www.servicenow.com/docs/r/platform-security/authentication/configure-hmac.html),
// which clients write as KEYID=<key id>,SIGNATURE=<base64>. Here it is the HMAC
// of the body, as either the base64 alone, as GlideCertificateEncryption's
// generateMac gives it, or that form; docs/webhooks.md has the script. There is
// no delivery id and no time, so the delivery is named by the SHA-256 of the
// body: the same body is the same delivery, whoever sends it. The event is the
// body's member event, if it has one.
//
// generic: Standard Webhooks 1.0.0
// (https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md):
// webhook-signature lists "v1," and the base64 HMAC-SHA256 of id, time and body,
// joined by dots; other versions in the list are passed over. The time may be
// five minutes from now, either way. The event is the body's member type.
//
// # Secrets
//
// A secret is the bytes that the sender has, of generic the base64 after
// whsec_. Several, one per line, are all accepted, so that a secret can be
// changed without a gap: add the new one below, change the sender, take the old
// one out.
package hook
