package serve

import (
	"context"
	"log/slog"
	"time"

	"github.com/gatehouse-dev/gatehouse/connector"
	"github.com/gatehouse-dev/gatehouse/internal/dispatch"
	"github.com/gatehouse-dev/gatehouse/internal/telemetry"
)

const (
	probeInterval = time.Minute
	probeTimeout  = 10 * time.Second
)

// prober looks at the targets that can be looked at, and says when one goes
// away or comes back.
type prober struct {
	targets func() []dispatch.Target
	metric  *telemetry.Targets
	log     *slog.Logger
	// redact takes the secrets of the configuration out of what a target says.
	redact func(string) string
	down   map[string]bool
}

func newProber(
	targets func() []dispatch.Target, metric *telemetry.Targets, redact func(string) string, log *slog.Logger,
) *prober {
	return &prober{targets: targets, metric: metric, log: log, redact: redact, down: map[string]bool{}}
}

// probe looks at each target once.
func (p *prober) probe(ctx context.Context) {
	for _, t := range p.targets() {
		target, ok := t.Connector.(connector.Prober)
		if !ok && t.Unready == nil {
			continue
		}
		err := t.Unready
		if err == nil {
			limited, cancel := context.WithTimeout(ctx, probeTimeout)
			err = target.Probe(limited)
			cancel()
		}
		if ctx.Err() != nil {
			return
		}
		p.metric.Probed(t.Name, err == nil)
		switch {
		case err != nil && !p.down[t.Name]:
			p.log.Warn("a target cannot be used; what is approved for it waits", "connector", t.Name, "error",
				p.redact(err.Error()))
		case err == nil && p.down[t.Name]:
			p.log.Info("a target can be used again", "connector", t.Name)
		}
		p.down[t.Name] = err != nil
	}
}
