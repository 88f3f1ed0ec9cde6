// Package netsuite carries out changes in Oracle NetSuite.
//
// # Two interfaces
//
// A RESTlet is a script in the account; the REST record service is NetSuite's own
// API. They make different promises:
//
//	create  record service   A  PUT …/eid:KEY: one record per external id, which is the key
//	create  our RESTlet      A  the same external id, searched for before and after
//	create  other RESTlet    C
//	update  our RESTlet      B  compares the pre-image and saves; the key's record identifies a second call
//	update  record service   C  NetSuite documents no condition: compared before, read back after
//	update  other RESTlet    C
//	bulk    our RESTlet      B  one update for each line, with a record of the key for each
//
// "Our RESTlet" is the file restlet/gatehouse_restlet.js, which is deployed to the
// account. It inserts the key's record, saves the change and stores the result in three
// transactions. A key with a record and no result is in doubt: the connector then reads
// the target, and the RESTlet does not repeat the change.
//
// # Bulk updates
//
// The RESTlet makes lines while NetSuite's limits let it, and answers with their outcomes. The
// connector then sends the action again, under the same key, with an offset. Lines do not depend on
// each other: one that is refused does not stop the rest. An attempt that leaves some lines applied
// and others not is ambiguous, so the action is never failed with an effect. From the second attempt
// on, an attempt that applies no line is terminal if no line can be applied later: then only a
// person can help.
//
// # Values
//
// Actions name fields by the canonical field map (fieldmap.yaml, and what the
// configuration adds). Numbers keep their approved digits and never become floats. A
// number with more than 15 significant digits is refused, because the script's floats
// would not keep it.
package netsuite
