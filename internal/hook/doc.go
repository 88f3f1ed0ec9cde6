// Package hook verifies the webhooks that start a workflow or report a changed target. They need
// no key: a signature over the exact bytes of the body authorizes them.
//
// # Kinds
//
// github: X-Hub-Signature-256 is "sha256=" and the hexadecimal HMAC-SHA256 of the body
// (https://docs.github.com/en/webhooks/using-webhooks/validating-webhook-deliveries).
// X-GitHub-Delivery names the delivery and X-GitHub-Event the event. Neither is signed, and
// there is no signed time. So an attacker who replays a delivery can give it another name. A
// workflow that must not run twice should take its ref from the body.
//
// servicenow: ServiceNow documents no signature of outbound webhooks; the author of a business
// rule or a flow decides what it sends. It does document the HMAC header of its own REST
// endpoints: x-sn-hmac-signature-256, by default a base64 HMAC-SHA256
// (https://www.servicenow.com/docs/r/platform-security/authentication/configure-hmac.html),
// which clients write as KEYID=<key id>,SIGNATURE=<base64>. Here it is the HMAC of the body,
// either in that form or as the base64 alone, which is what GlideCertificateEncryption's
// generateMac returns; docs/webhooks.md has the script. There is no delivery id and no time, so
// the SHA-256 of the body identifies the delivery: the same body is the same delivery, whoever
// sends it. The event is the body's member event, if there is one.
//
// generic: Standard Webhooks 1.0.0
// (https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md):
// webhook-signature lists "v1," and the base64 HMAC-SHA256 of id, time and body, joined by dots;
// other versions in the list are ignored. The time may differ from now by up to five minutes.
// The event is the body's member type.
//
// # Secrets
//
// A secret is the same text as at the sender. For generic it is base64, with or without whsec_
// before it. Several secrets, one per line, are all accepted, so that a secret can be rotated
// without a gap: add the new one, change the sender, remove the old one.
package hook
