// Package httpconn carries out changes by HTTP requests.
//
// # The promises
//
// One Execute writes at most one request, on a new connection: connections are not kept alive,
// HTTP/2 is off and no body can be rewound, so the standard library never resends a request.
// Redirects are not followed and proxies are not used. A separate request fetches the access token
// first.
//
// A failure is not_sent only if there was no connection (with TLS, a connection exists when the handshake is
// completed), if there was no access token, or if a configured outcome says so. If there was a connection, every
// failure before the status line is ambiguous. A status line counts as the target's answer even if the body is cut
// off, unless an outcome rule or response_schema needs the body: then the outcome is ambiguous.
//
// # Templates
//
// Paths, queries, headers and bodies are templates of the configuration, in which {name} is
// replaced by a value of the call. Each value is escaped for its place: as one path segment, as a
// query value, as a JSON value or as part of a JSON string; in a header it must be printable ASCII.
// An agent's text can fill a place, but never create a new one. [Operation] lists the names.
//
// # Secrets
//
// A configuration contains the names of secrets, never their values. A value occurs only in the
// request; if the target echoes it, it is removed from the receipt.
package httpconn
