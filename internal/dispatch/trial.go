package dispatch

import (
	"context"
	"time"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/connector"
)

// atBreaker asks the connector's breaker whether the push may proceed; if not, wait is the time
// until the next try. If the connector has a probe, the probe runs before a trial and costs no
// attempt.
func (j *job) atBreaker(ctx context.Context) (wait time.Duration) {
	name := j.push.Connector
	j.pass, j.trial, wait = j.breakers.admit(name)
	if !j.trial {
		return wait
	}
	conn, _ := j.targets.Lookup(j.push.Tenant, name)
	prober, ok := conn.(connector.Prober)
	if !ok || j.targets.unready(j.push.Tenant, name) != nil {
		return 0 // an unready target is refused without a call
	}
	ctx, cancel := j.readContext(ctx, j.readDeadline())
	defer cancel()
	if failure := j.targets.probe(ctx, prober); failure != nil {
		j.reportToBreaker(signIll, failure)
		_, _, wait = j.breakers.admit(name)
		return max(wait, time.Second)
	}
	return 0
}

// reportToBreaker reports the job's result to the breaker, once. A failed trial does not
// count against the push's retries.
func (j *job) reportToBreaker(s sign, failure *connector.Error) {
	if !j.pass {
		return
	}
	j.pass = false
	if j.trial && s == signIll && j.push.AttemptBase < j.push.Attempts {
		mine := *j.push // the row as claimed may belong to the batch
		mine.AttemptBase++
		j.push = &mine
	}
	j.breakers.ended(j.push.Tenant, j.push.Connector, j.trial, s, failure)
}

// putBack puts the push back without an attempt. The waits vary, so that waiting pushes return one after another.
func (j *job) putBack(ctx context.Context, wait time.Duration, code, detail string) (string, error) {
	wait += time.Duration(float64(wait) * j.random() / 5)
	err := j.update(ctx, gatehouse.PushPicking, func(s *step) {
		s.push.PutBack++
		s.retry(s.tx.Now().Add(wait), code, clip(detail))
	})
	return outcomeReleased, err
}

// probe calls [connector.Prober], which is foreign code.
func (r *Registry) probe(ctx context.Context, p connector.Prober) (failure *connector.Error) {
	defer func() { failure = r.redactError(failure) }()
	defer recoverTo(&failure)
	if err := p.Probe(ctx); err != nil {
		return &connector.Error{Kind: connector.NotSent, Code: "probe_failed", Detail: err.Error(), Err: err}
	}
	return nil
}

// Breakers lists the breakers of this process that are not closed, as a tenant may see them.
func (d *Dispatcher) Breakers(tenant string) []gatehouse.BreakerState {
	return d.breakers.states(tenant)
}
