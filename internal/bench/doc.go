// Package bench measures a gate beside what the machine can do without one.
//
// Every figure has two sides that are measured in turns, A B A B, in the same
// run: the gate, and a baseline of the same shape that does only what cannot
// be left out, such as a bare HTTP endpoint with one guarded UPDATE and two
// INSERTs under the same durability. What counts is the ratio of the two: it
// holds on a slow, shared or noisy machine, where absolute figures do not.
//
// Rules of the measurements:
//
//   - Both sides run in this process, and both are loaded over keep-alive TCP
//     by the same raw client, on the same cores. Only memory and start-up are
//     those of child processes.
//   - Both sides stand on one engine with the same durability: SQLite files in
//     one folder (WAL, synchronous=FULL, group commit), or databases on one
//     PostgreSQL server (one statement a unit of work, 16 connections), with
//     its planner told of what is stored. Nothing is answered before it is
//     durable. What a side costs the PostgreSQL server is in no CPU figure.
//   - The rows that a side works on are stored before its clock starts, and
//     what the other side left to be done in the background is done by then.
//   - The set-up is the same in every run. Ids are not random in order.
//   - Each value is one round's; of the rounds the least, the median and the
//     greatest are shown. A ratio is taken within a round, of neighbours.
package bench
