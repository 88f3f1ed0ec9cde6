// Package servicenow changes records of a ServiceNow instance by its Table API
// (https://www.servicenow.com/docs/r/api-reference/rest-apis/c_TableAPI.html).
//
// # What the Table API lacks
//
// The API has no conditional update and no idempotency key, and its 200 proves
// nothing: it silently ignores fields that are unknown or that the user may not
// write, and business rules change values. So each operation
//
//  1. waits for this process's other calls for the same record;
//  2. reads the record, and refuses a mismatch with the proposal; a creation searches
//     for the record of an earlier call instead, and compares it;
//  3. writes, once;
//  4. compares each approved field with the answer. A note does not appear in the
//     answer, so it is searched for in the journal.
//
// Between the second and the third step another client may write, so the class is C.
// With Gatehouse's business rule on the table ([Config], Condition), the instance
// itself compares sys_mod_count, and updates are of class B.
//
// # not_as_approved
//
// If no approved value was applied and sys_mod_count is unchanged, the instance has
// ignored the write, and the error is terminal. If the instance has applied only a part,
// or other values, the outcome is ambiguous and a person has to check it.
package servicenow
