// Package policy judges proposals: it says whether an action is allowed, denied, or
// needs people's approval (how many and whose), and what it claims of the ceilings.
// It is pure: no clock, no input or output, and the same facts give the same
// verdict.
//
// A policy is a YAML file with conditions in CEL. [Parse] reads it strictly and
// compiles every expression once; [Policy.Evaluate] is safe for concurrent use and
// takes a few microseconds. docs/policy.md and docs/policy-language.md are the manual.
//
// It fails closed, by these rules:
//
//   - Deny beats needs_approval beats allow; the order of rules does not count.
//   - No rule matched: needs_approval.
//   - A condition that cannot be evaluated (a missing fact, a type that does not
//     fit, too high a cost, a result that is not a truth value) never allows: a
//     deny rule denies, any other rule asks for approval.
//   - L3 and above is never allowed without a person, L5 not without two, whatever
//     the rules say.
//   - A ceiling denies when it is unknown whether it applies, or what the action
//     claims of it.
//
// Conditions are CEL as in internal/expr: && and || do not absorb an error in a
// term that was evaluated, and no number is ever a float.
package policy
