// Package link signs and verifies the tokens of links in mails, and of browsers in which a
// person has signed in.
//
// # Format
//
// A token is base64url, without padding, of
//
//	version    1 byte    1
//	key        4 bytes   number of the key, big-endian
//	purpose    1 byte    1 review, 2 device, 3 unsubscribe
//	tenant     8 bytes   first bytes of SHA-256 of the tenant's id
//	subject   16 bytes   first bytes of SHA-256 of the id of the review or session, or of the channel's name
//	digest    32 bytes   the action's digest; zeros if the purpose is not review
//	recipient 16 bytes   first bytes of SHA-256 of the recipient's id
//	expires    4 bytes   seconds since 1970, big-endian
//	task      32 bytes   SHA-256 of a Step Functions task token; absent without one
//	mac       32 bytes   HMAC-SHA256 of "gatehouse link v1\0" and all bytes before
//
// testdata/tokens.json has vectors for implementations in other languages.
//
// # Rules
//
// The key is found by its number, then the MAC is compared, in constant time. Nothing
// else that the token names is looked up before.
//
// A review token alone opens a page. It decides nothing: scanners follow links, and some
// press buttons. Deciding needs one more proof, which neither link nor page contains: a
// session or API key of the recipient, or, where the policy allows it, a browser in which
// the recipient has signed in, or the code in the mail's text. An unsubscribe token alone
// switches off digests.
package link
