// Package bench compares a gate with the minimum that the machine needs for the same
// work.
//
// Every figure has two sides that are measured alternately, A B A B, in the same run:
// the gate, and a baseline of the same shape that does only the necessary minimum, such
// as a bare HTTP endpoint with one guarded UPDATE and two INSERTs under the same
// durability. The result is the ratio of the two. It is stable on a slow, shared or
// noisy machine, where absolute figures are not.
//
// Rules of the measurements:
//
//   - Both sides run in this process, on the same cores, and the same raw client loads
//     both over keep-alive TCP. Only memory, start-up and the CPU time of a waiting
//     server are measured on child processes.
//   - Both sides use the same engine with the same durability: SQLite files in one
//     folder (WAL, synchronous=FULL, group commit), or databases on one PostgreSQL
//     server with fresh planner statistics (16 connections; a baseline sends one statement
//     per unit of work, or one for a micro-batch of units; that of steps completes a batch of
//     steps in one transaction). An answer is sent only after its data is durable. The CPU
//     figures do not include the PostgreSQL server.
//   - The rows that a side works on are stored before its clock starts, and the
//     background work of the other side is finished by then.
//   - The gate judges by ten rules, of which two match, and none in a run of the figure
//     triage; the figure policy measures the default policy instead.
//   - The set-up is the same in every run. Ids are created in ascending order.
//   - Each value belongs to one round; the minimum, the median and the maximum over the
//     rounds are shown. A ratio is taken within a round, from adjacent measurements.
package bench
