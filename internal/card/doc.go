// Package card produces what people see of an action: the one sentence with its
// consequence, its change field by field, its texts made visible, its risk, and
// what confirming it requires. The console, the terminal and the messages all use
// this package, so that they cannot contradict each other.
//
// # The rules
//
// Everything here is pure: no clock, no input or output, and the same answer for
// the same action. The functions return data and never markup: a view always
// escapes what it writes.
//
// Text from agents is hostile until a person has judged it. The package never
// builds its own words from an agent's free text (rationale, context, metadata).
// Payload values are shown as values and marked as such, so that a value cannot
// pass for the package's own words. [Visible] says for every character whether it
// shows as itself.
//
// Nothing is lost. Folded parts can be unfolded: [Changes] covers the whole
// pre-image and the whole change; the lines of a [Text] reproduce both of its sides
// byte for byte, and so do the spans of [Visible]. A view that leaves out a part of the
// decision's subject must not offer approval: [Hidden] reports this for given limits.
//
// Numbers are the lexemes as they are stored. Arithmetic is that of
// [gatehouse.Decimal]: exact.
package card
