package cli

import (
	"os/exec"
	"slices"
	"testing"
	"time"
)

// BenchmarkMCP calls a tool through the proxy and, in turns with it, on the bare server, each in
// processes of their own. "allowed" calls become actions that the policy allows: each is proposed,
// leased and reported durably. "read" are calls that the operator lets pass.
func BenchmarkMCP(b *testing.B) {
	for _, c := range []struct {
		name, tool, arguments string
		flags                 []string
	}{
		{"allowed", "note", `{"text":"x"}`, nil},
		{"read", "count", `{}`, []string{"--read-only-hint-is-read", "count"}},
	} {
		b.Run(c.name, func(b *testing.B) {
			w := newMCPWorldWith(b, "note: {floor: 1}", `, rate_limit: {per_second: 100000, burst: 100000}`)
			bare := w.start(exec.Command(w.command[0], w.command[1:]...))
			gated := w.proxy(c.flags...)
			measure := func(client *mcpClient) time.Duration {
				began := time.Now()
				if got := client.call(c.tool, c.arguments); got.IsError {
					b.Fatalf("%s", got.text())
				}
				return time.Since(began)
			}
			for range 20 { // until both are warm
				measure(bare)
				measure(gated)
			}
			var without, with []time.Duration
			for b.Loop() {
				without = append(without, measure(bare))
				with = append(with, measure(gated))
			}
			for _, q := range []struct {
				name string
				part int
			}{{"p50", 50}, {"p99", 99}} {
				bare, gated := quantile(without, q.part), quantile(with, q.part)
				b.ReportMetric(float64(bare.Microseconds()), "bare-"+q.name+"-µs")
				b.ReportMetric(float64((gated - bare).Microseconds()), "more-"+q.name+"-µs")
				b.ReportMetric(float64(gated)/float64(bare), "ratio-"+q.name)
			}
		})
	}
}

// quantile returns a percentile of the times.
func quantile(times []time.Duration, percent int) time.Duration {
	sorted := slices.Sorted(slices.Values(times))
	return sorted[min(len(sorted)-1, len(sorted)*percent/100)]
}
