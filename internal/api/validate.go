package api

import (
	"github.com/gatehouse-dev/gatehouse"
)

func checkTenant(t *newTenant) error {
	var v gatehouse.Violations
	if !gatehouse.ValidName(t.ID) {
		v.Add("/id", gatehouse.NameRule)
	}
	return v.Err()
}

func requireSource(source string) error {
	var v gatehouse.Violations
	if source == "" {
		v.Add("/source", "is required")
	}
	return v.Err()
}
