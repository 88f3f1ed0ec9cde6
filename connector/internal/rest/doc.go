// Package rest is shared by the connectors to HTTP APIs: it sends each request once and never to an
// internal address, classifies requests without an answer, and selects the parts of an answer that
// a receipt keeps.
package rest
