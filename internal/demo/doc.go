// Package demo plays a shop with an agent before a running gate, and checks
// afterwards that the shop's ledger holds exactly what was approved.
//
// # Who knows what
//
// The ledger is a real SQLite database. Before the first proposal it is copied
// whole. During the play, everybody who lets something happen to the ledger
// writes it into one journal, a file of their own: a reviewer what they
// decided and the exact change that they saw, the agent what the policy let
// pass, a clerk what was written past the gate. In the end the copy is brought
// forward by the journal, with SQL that this package has for itself, and
// compared with the ledger: every table, every row, every column. Neither the
// gate's tables nor its connectors have a part in that, so a change that the
// gate lost, made twice, made otherwise or made up shows as a difference.
//
// # What is played
//
// See situations. Data, agent and reviewers are deterministic: but for ids and
// times, each run is the same. Each proposal carries {"demo": true} in its
// metadata.
package demo
