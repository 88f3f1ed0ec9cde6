// Package httpconn carries changes out by HTTP requests.
//
// # The promises
//
// One Execute writes at most one request, on a connection of its own: nothing
// is kept alive, HTTP/2 is off and no body can be rewound, so that the
// standard library has no occasion to send a request again. No redirect is
// followed and no proxy is asked.
//
// A failure is not_sent only when no connection (with TLS: no completed
// handshake) was ever had to write to. Once one was, whatever happens before
// the status line has come is ambiguous. A status line is the target's word,
// even if the body breaks off after it.
//
// # Templates
//
// Paths, queries, headers and bodies are templates of the configuration, in
// which {name} stands for a value of the call. Each value is escaped for where
// it stands: as one path segment, as a query value, as a JSON value or a part
// of a JSON string; in a header it must be printable ASCII. What an agent
// writes can fill a place, but never make a new one. The names are listed at
// [Operation].
//
// # Secrets
//
// A configuration names secrets and never holds them. Their values stand in
// the request and nowhere else; where a target echoes one, it is taken out of
// the receipt.
package httpconn
