package gatehouse

import "time"

// Build describes the source of a program's build.
type Build struct {
	// Version is the release's version.
	Version string `json:"version"`
	// Commit is the source's full hash, followed by "+modified" where files
	// differed from the commit. It is empty where the build had no version control
	// and was given no commit.
	Commit string `json:"commit,omitempty"`
	// Date is the date of the commit, not of the build: the same source gives the
	// same bytes.
	Date time.Time `json:"date,omitzero"`
}

// Health is the public state of a server; reading it needs no credentials.
type Health struct {
	// Status is "ok".
	Status string `json:"status"`
	Build
	// Connectors is absent for a server without connectors in its store.
	Connectors *ConnectorState `json:"connectors,omitempty"`
}
