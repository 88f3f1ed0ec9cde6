// Package card says what a person is shown of an action: the one sentence with
// its consequence, its change field by field, its texts made visible, its risk
// and what confirming it takes. The console, the terminal and the messages all
// show what this package says, so that they cannot say different things.
//
// # The rules
//
// Everything here is pure: no clock, no input or output, the same answer for
// the same action. The functions return data and never markup: a view escapes
// what it writes, always.
//
// What agents wrote is hostile until a person has judged it. No words of the
// package are made from free text of an agent (rationale, context, metadata);
// what stands in a payload is shown as a value and marked as one, so that a
// value cannot pass for a word of ours. [Visible] tells for every character
// whether it shows as itself.
//
// Nothing is lost. What is folded is there to be unfolded: [Changes] covers the
// whole pre-image and the whole change, the lines of a [Text] give back both of
// its sides byte for byte, and so do the spans of [Visible]. A view that cuts
// something asks [Hidden] whether an approval is still possible; it is not.
//
// Numbers are the lexemes as they are stored. Arithmetic is that of
// [gatehouse.Decimal]: exact.
package card
