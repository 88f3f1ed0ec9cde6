package serve

import (
	"context"
	"crypto/sha256"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/config"
	"github.com/gatehouse-dev/gatehouse/internal/gate"
	"github.com/gatehouse-dev/gatehouse/internal/hook"
	"github.com/gatehouse-dev/gatehouse/internal/telemetry"
)

// targetSource is a configured source of reports, with its secret.
type targetSource struct {
	config.TargetSource
	secret string
}

// newTargetSource fails if the kind of signature cannot use the secret, or if another source shares a key
// with it: the key's holder could report for both.
func newTargetSource(
	name string, all map[string]config.TargetSource, secret func(string) (string, error),
) (*targetSource, error) {
	entry := all[name]
	value, err := secret(entry.Secret)
	if err != nil {
		return nil, err
	}
	if err := hook.CheckSecret(entry.Kind, value); err != nil {
		return nil, err
	}
	for _, other := range slices.Sorted(maps.Keys(all)) {
		text, err := secret(all[other].Secret)
		if other != name && err == nil && hook.ShareKey(entry.Kind, value, all[other].Kind, text) {
			return nil, fmt.Errorf("hooks.targets.%s has the same secret: each source needs its own", other)
		}
	}
	return &targetSource{entry, value}, nil
}

// targetHooks takes the reports of the configured sources.
type targetHooks struct {
	gate    *gate.Gate
	log     *slog.Logger
	sources map[string]*targetSource
	counts  *telemetry.TargetReports
}

func newTargetHooks(n *Node, metrics prometheus.Registerer) (*targetHooks, error) {
	t := &targetHooks{gate: n.Gate, log: n.Log, sources: make(map[string]*targetSource)}
	for _, name := range slices.Sorted(maps.Keys(n.config.Hooks.Targets)) {
		s, err := newTargetSource(name, n.config.Hooks.Targets, n.config.Secret)
		if err != nil {
			return nil, fmt.Errorf("hooks.targets.%s: %w", name, err)
		}
		t.sources[name] = s
	}
	t.counts = telemetry.NewTargetReports(metrics, slices.Sorted(maps.Keys(t.sources))...)
	return t, nil
}

// ReportTarget implements api.TargetHooks.
func (t *targetHooks) ReportTarget(
	ctx context.Context, name string, h http.Header, body []byte,
) (out *gatehouse.TargetChanges, replayed bool, err error) {
	s, known := t.sources[name]
	if !known {
		return nil, false, gatehouse.E(gatehouse.CodeNotFound, "no such webhook")
	}
	out, replayed, err = t.take(ctx, name, s, h, body)
	result := telemetry.ReportAccepted
	switch {
	case err != nil && gatehouse.StatusOf(gatehouse.CodeOf(err)) < http.StatusInternalServerError:
		result = telemetry.ReportRefused
		t.log.WarnContext(ctx, "a report of a changed target was refused", "source", name, "error", err)
	case err != nil:
		result = telemetry.ReportFailed
	case replayed:
		result = telemetry.ReportReplayed
	}
	t.counts.Received(name, result)
	return out, replayed, err
}

func (t *targetHooks) take(
	ctx context.Context, name string, s *targetSource, h http.Header, body []byte,
) (*gatehouse.TargetChanges, bool, error) {
	var now time.Time
	err := t.gate.Store.View(ctx, s.Tenant, func(tx gatehouse.ReadTx) error {
		now = tx.Now()
		return nil
	})
	if err != nil {
		return nil, false, err
	}
	delivery, err := hook.Verify(s.Kind, []byte(s.secret), h, body, now)
	if err != nil {
		return nil, false, err
	}
	fields := hook.TargetFields{EntityType: s.EntityType, EntityRef: s.EntityRef, Version: s.Version}
	change, err := fields.Change(s.Connector, body)
	if err != nil {
		return nil, false, err
	}
	return t.gate.TargetReported(ctx, &gate.TargetReport{
		Tenant: s.Tenant, Source: name, Delivery: delivery.ID, Body: sha256.Sum256(body), Change: change,
	})
}
