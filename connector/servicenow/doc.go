// Package servicenow changes records of a ServiceNow instance by its Table API
// (https://www.servicenow.com/docs/r/api-reference/rest-apis/c_TableAPI.html).
//
// # What the Table API has not
//
// It has no conditional update and no idempotency key, and its 200 is no proof:
// fields that are unknown, or that the user may not write, are dropped silently,
// and business rules change values. So each operation
//
//  1. takes turns with the other calls of this process for the same record;
//  2. reads the record, and refuses when it is not as the proposal says;
//  3. writes, once;
//  4. compares each approved field with the answer. A note, which is never
//     answered, is looked for in the journal.
//
// Between the second and the third step somebody else may write: the class is C.
// With a business rule of ours on the table ([Config], Condition) the instance
// compares sys_mod_count itself, and updates are of class B.
//
// # not_as_approved
//
// Where nothing of what was approved was taken, and sys_mod_count is as before,
// the instance has done nothing: terminal. Where a part was taken, or another
// value came of it, the outcome is ambiguous, for a person to look at.
package servicenow
