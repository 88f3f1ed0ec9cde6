// Package rest is shared by the connectors to HTTP APIs: it sends each request once, and to an
// internal address only if that is permitted, classifies requests without an answer, and selects the
// parts of an answer that a receipt keeps.
package rest
