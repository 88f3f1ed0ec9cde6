// Package stripe carries out changes in Stripe: refunds, credits to a customer's balance, and
// changes to subscriptions.
//
// # Exactly one effect
//
// Every operation is of class A. A POST has an Idempotency-Key, under which Stripe keeps the first
// answer for at least 24 hours. The key is also stored in the metadata of the created or changed
// object, or in the comment of a cancellation. Each call reads the target first; if it finds its own
// effect by that key, it sends nothing. So repeating a call is harmless even after those 24 hours,
// unless a hundred newer effects on the target, or a later change of the subscription, hide the key.
//
// # Money
//
// Amounts are decimals in the currency's own unit, such as 12.50 for euros and 500 for yen. They
// are converted to Stripe's integers without a float.
package stripe
