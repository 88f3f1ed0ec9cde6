// Package salesforce changes records of Salesforce by its REST API
// (https://developer.salesforce.com/docs/atlas.en-us.api_rest.meta/api_rest/).
//
// An update is of class B. It reads the record, refuses when it is not as the proposal
// says, and writes with If-Unmodified-Since: Salesforce answers 412 to all but the first
// who writes on the state that was read. That header counts in seconds, and a record
// remembers the second of its last change. A change within the second of the previous one
// would pass unseen, so the connector writes only on a state that is at least a second
// old, by Salesforce's own clock, and waits for that second where it must.
//
// A creation is of class A: it goes to the address of an external id, whose value is the
// key of the call. The field of the external id must be unique. Salesforce then makes one
// record for the key.
//
// A deletion is of class C: Salesforce takes no condition for it.
//
// After each write the record is read again, and compared with what was approved:
// triggers, flows and validation may have changed it.
package salesforce
