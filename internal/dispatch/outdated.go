package dispatch

import (
	"context"
	"time"
)

// codeOutdated is the error code of a push that waits until this process, or another one,
// has the stored version of the connectors.
const codeOutdated = "connectors_outdated"

// outdatedWait is how long a push with codeOutdated waits by default.
const outdatedWait = 5 * time.Second

// outdated is the error of a transaction that needs the connectors of the store reloaded. It
// implements [usecase.NeedsWork].
type outdated struct{ j *job }

func (outdated) Error() string { return "dispatch: the connectors of the store may be outdated" }

// Do loads the connectors.
func (o outdated) Do(ctx context.Context) error {
	o.j.refreshConnectors(ctx)
	return nil
}

// outdated reports whether a refusal may be due to an outdated connector.
func (j *job) outdated(r *reason) bool {
	return r != nil && r.connector && !j.refreshed && j.targets.mayBeOutdated(j.push.Connector)
}

// refreshConnectors loads the connectors of the store, once per job.
func (j *job) refreshConnectors(ctx context.Context) {
	j.refreshed, j.outdatedReason = true, j.targets.refresh(ctx)
}
