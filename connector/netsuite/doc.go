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
//	update  our RESTlet      B  compares the pre-image and saves; a record of the key identifies a second call
//	update  record service   C  NetSuite documents no condition: compared before, read back after
//	update  other RESTlet    C
//	bulk    our RESTlet      B  one update for each line, with a record of the key for each
//
// A PUT to an external id that exists overwrites the record. So a later attempt reads first, and leaves a
// record that is there as it is.
//
// "Our RESTlet" is the file restlet/gatehouse_restlet.js, which is deployed to the
// account. For an update, it makes three transactions: it inserts a record of the idempotency
// key, saves the change, and stores the result in the key's record. A key whose record has no
// result is in doubt: the RESTlet does not repeat the change, and the connector reads the target.
//
// # Bulk updates
//
// A line is one update, of a record or of a line of a sublist. The RESTlet saves line after line
// until the call comes close to NetSuite's limits, and answers with the outcomes of these lines. The
// connector then sends the action again, under the same key, with the offset of the next line. A
// refused line does not stop the others. An attempt after which only some lines are applied is
// ambiguous, so an action with an effect never ends as failed. If a later attempt applies no further
// line, and no refused line can be applied later, that attempt is terminal, and a person must decide.
//
// # Values
//
// Actions name fields by the canonical field map (fieldmap.yaml, and what the
// configuration adds). Numbers keep their approved digits and never become floats. A
// number with more than 15 significant digits is refused, because the script's floats
// would not keep it.
package netsuite
