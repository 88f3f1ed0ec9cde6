package serve

import (
	"context"
	"log/slog"
	"maps"
	"time"

	"github.com/gatehouse-dev/gatehouse/connector"
	"github.com/gatehouse-dev/gatehouse/internal/dispatch"
	"github.com/gatehouse-dev/gatehouse/internal/telemetry"
)

const (
	probeInterval = time.Minute
	probeTimeout  = 10 * time.Second
)

// prober probes the targets whose connectors support it, and logs when a target
// becomes unreachable or reachable.
type prober struct {
	targets func() []dispatch.Target
	metric  *telemetry.Targets
	log     *slog.Logger
	// redact removes the secrets of the configuration from a target's answer.
	redact func(dispatch.Target, string) string
	// down has the targets of the last probe, and whether each was down.
	down map[string]bool
}

func newProber(
	targets func() []dispatch.Target, metric *telemetry.Targets, redact func(dispatch.Target, string) string,
	log *slog.Logger,
) *prober {
	return &prober{targets: targets, metric: metric, log: log, redact: redact, down: map[string]bool{}}
}

// probe probes each target once.
func (p *prober) probe(ctx context.Context) {
	gone := maps.Clone(p.down)
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
		delete(gone, t.Name)
		p.metric.Probed(t.Name, err == nil)
		switch {
		case err != nil && !p.down[t.Name]:
			p.log.Warn("a target cannot be used; attempts of its approved changes may fail", "connector", t.Name,
				"error", p.redact(t, err.Error()))
		case err == nil && p.down[t.Name]:
			p.log.Info("a target can be used again", "connector", t.Name)
		}
		p.down[t.Name] = err != nil
	}
	for name := range gone {
		delete(p.down, name)
		p.metric.Gone(name)
	}
}
