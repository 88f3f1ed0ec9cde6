// Package stripe carries changes out at Stripe: refunds, credits to a customer's
// balance, and what is done to subscriptions.
//
// # Once
//
// Every operation is of class A. A POST has an Idempotency-Key, of which Stripe keeps
// the first answer for at least 24 hours. The key also stands in the metadata of what
// is made, or in the comment of a cancellation. Each call reads the target first, finds
// its own effect by that key, and then sends nothing: so a call is harmless after
// those 24 hours, too.
//
// # Money
//
// Amounts are decimals in the currency's own unit, such as 12.50 for euros and 500 for
// yen. They become Stripe's integers without passing through a float.
package stripe
