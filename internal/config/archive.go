package config

import (
	"fmt"

	"github.com/gatehouse-dev/gatehouse"
)

// Retention sets how long ended actions stay in the live tables. Runs are not archived.
type Retention struct {
	// Finished is how long after its end an action is archived, 30d to 3650d; never by default.
	Finished gatehouse.Duration `yaml:"finished"`
}

// maxRetention is ten years, in days.
const maxRetention = 3650

func (r *Retention) validate(path string) error {
	const day = gatehouse.MinRetention / 30
	if d := r.Finished.D(); d != 0 && (d < gatehouse.MinRetention || d > maxRetention*day) {
		return fmt.Errorf("%s: retention.finished: must be %s to %dd", path, gatehouse.Duration(gatehouse.MinRetention),
			maxRetention)
	}
	return nil
}
