// Package netsuite carries changes out at Oracle NetSuite.
//
// # Two ways in
//
// A RESTlet is a script in the account; the REST record service is NetSuite's own
// API. What each can promise differs:
//
//	create  record service   A  PUT …/eid:KEY: one record per external id, which is the key
//	create  our RESTlet      A  the same external id, searched for before and after
//	create  other RESTlet    C
//	update  our RESTlet      B  compares the pre-image and saves; the key's record tells a second call
//	update  record service   C  NetSuite documents no condition: compared before, read back after
//	update  other RESTlet    C
//
// "Our RESTlet" is the file restlet/gatehouse_restlet.js, which is deployed to the
// account. Its insert of the key's record and its save of the change are two
// transactions. A key with a record and no result is in doubt: the connector then
// reads the target, and never repeats.
//
// # Values
//
// Actions name fields by the canonical field map (fieldmap.yaml, and what the
// configuration adds). Numbers travel as they were approved, never as floats; what a
// float of the script would not keep, beyond 15 significant digits, is refused.
package netsuite
