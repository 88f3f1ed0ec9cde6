package config

import (
	"fmt"
	"time"

	"github.com/gatehouse-dev/gatehouse"
)

// Links sets how the links of mails are signed.
type Links struct {
	// MasterKey seals the keys of links and stored secrets: 32 bytes in base64; by default master.key
	// in the data folder, none by default on PostgreSQL. It may have several lines: the first seals, and
	// each of them opens.
	MasterKey string `yaml:"master_key"`
	// TTL is how long a link is valid, at most as long as the approval; 7d by default, 30d at
	// most.
	TTL gatehouse.Duration `yaml:"ttl"`
	// RotateEvery is how long a key signs new links; 30d by default.
	RotateEvery gatehouse.Duration `yaml:"rotate_every"`
}

func (l *Links) validate(path string) error {
	if d := l.TTL.D(); d != 0 && (d < time.Minute || d > gatehouse.MaxLinkTTL) {
		return fmt.Errorf("%s: links.ttl: must be 1m to 30d", path)
	}
	if d := l.RotateEvery.D(); d != 0 && (d < time.Hour || d > 366*24*time.Hour) {
		return fmt.Errorf("%s: links.rotate_every: must be 1h to 366d", path)
	}
	return nil
}
