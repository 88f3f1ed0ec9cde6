package config_test

import (
	"strings"
	"testing"
	"time"

	"github.com/gatehouse-dev/gatehouse/internal/config"
)

func TestRetention(t *testing.T) {
	t.Parallel()
	for src, want := range map[string]time.Duration{
		"":                             0,
		"retention: {}":                0,
		"retention: {finished: 30d}":   30 * 24 * time.Hour,
		"retention: {finished: 720h}":  30 * 24 * time.Hour,
		"retention: {finished: 3650d}": 3650 * 24 * time.Hour,
	} {
		c, err := config.Parse("gatehouse.yaml", []byte(src))
		if err != nil || c.Retention.Finished.D() != want {
			t.Errorf("%q: %v, %v", src, c, err)
		}
	}
	for _, src := range []string{
		"retention: {finished: 29d}", "retention: {finished: 1s}", "retention: {finished: 3651d}",
		"retention: {finished: never}",
		"retention: {pending: 30d}", "retention: 30d",
	} {
		if c, err := config.Parse("gatehouse.yaml", []byte(src)); err == nil ||
			!strings.HasPrefix(err.Error(), "gatehouse.yaml:") {
			t.Errorf("%q: %+v, %v", src, c, err)
		}
	}
}
