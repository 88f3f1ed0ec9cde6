package gatehouse

import "time"

// Build tells what a program was built from.
type Build struct {
	Version string `json:"version"`
	// Commit is the source's full hash, with "+modified" behind it where files differed from the commit. It is
	// empty where the build had no version control and was not told.
	Commit string `json:"commit,omitempty"`
	// Date is the commit's, not the build's: the same source gives the same bytes.
	Date time.Time `json:"date,omitzero"`
}

// Health is what a server tells everybody who reaches it, without looking anything up.
type Health struct {
	// Status is "ok".
	Status string `json:"status"`
	Build
}
