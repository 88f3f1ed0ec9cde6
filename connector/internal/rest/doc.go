// Package rest is what connectors to HTTP APIs have in common: requests that are
// sent once and to no inside address, what can be said of one without an answer,
// and what a receipt keeps of one that came.
package rest
