// Package salesforce changes records of Salesforce by its REST API
// (https://developer.salesforce.com/docs/atlas.en-us.api_rest.meta/api_rest/).
//
// An update is of class B. It reads the record, refuses a mismatch with the proposal, and writes
// with If-Unmodified-Since and the time of the last change that it has read. Of several such
// writes with the same time, Salesforce accepts the first and answers 412 to the others. The header
// has a resolution of one second, as has a record's time of the last change. A change within the
// same second as the previous one would not be noticed, so the connector writes only after the
// second of the last change has passed on Salesforce's own clock, and waits for that if necessary.
//
// A creation is of class A: it is sent to the URL of an external id whose value is the call's key.
// The field of the external id must be unique. Salesforce then creates one record per key.
//
// A deletion is of class C: Salesforce supports no condition for it.
//
// After a creation or an update, the connector reads the record again and compares it with the
// approved change, because triggers, flows and validation may have changed it.
package salesforce
