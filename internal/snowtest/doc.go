// Package snowtest is a fake ServiceNow, for tests and examples: the tables incident and
// change_request, the referenced tables, their labels and their journals, in memory. Its answers
// say that it is a fake.
//
// It does what ServiceNow documents of its Table API
// (https://www.servicenow.com/docs/r/api-reference/rest-apis/c_TableAPI.html): GET of a list and of
// a record, POST, PATCH and PUT, the sysparm parameters, the result envelope, display values, the
// statuses and the shape of errors
// (https://support.servicenow.com/kb?id=kb_article_view&sysparm_article=KB1479016). As there, PUT
// changes the named fields only, fields that begin with sys_ cannot be written, and an update that
// changes nothing does not increase sys_mod_count. A write to a journal field (work_notes, comments)
// adds an entry; entries are read as display values only, or by sys_journal_field. Fields that the
// user may not write are silently dropped, and tables that the user may not read are empty. Tokens
// are issued for client credentials and expire. The Table API documents no ETag, no If-Match and no
// idempotency key; the fake has none either, and ignores such headers.
//
// It refuses some features that it lacks: XML with status 406 or 415, and the following with status
// 501: DELETE in other tables than label_entry, sysparm_view, sysparm_query_no_domain,
// sysparm_query_category, and ^OR, ^NQ and scripts in queries.
//
// Unlike the real ServiceNow, it keeps a ledger of every write, so that a test can tell whether a
// change was made once, and it can fail on request.
package snowtest
