package gatehouse

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// WorkerNames are the names or ids of the principals that may lease one kind of work, such as the pushes of a
// connector. Nil permits every principal with the role worker.
type WorkerNames []string

// Validate refuses an empty list, which would permit nobody, and texts that cannot name a principal.
func (w WorkerNames) Validate() error {
	if w != nil && len(w) == 0 {
		return errors.New("the list is empty; leave the key out for every principal with the role worker")
	}
	for _, name := range w {
		if !ValidName(name) {
			return fmt.Errorf("%s cannot name a principal", Quote(name))
		}
	}
	return nil
}

// Permit returns an error with code worker_not_allowed unless the principal may lease the work, which the error calls
// what.
func (w WorkerNames) Permit(p *Principal, what string) error {
	is := func(name string) bool { return name == p.ID || strings.EqualFold(name, p.Name) }
	if w == nil || slices.ContainsFunc(w, is) {
		return nil
	}
	return E(CodeWorkerNotAllowed, "other principals carry out %s: see its workers in the configuration", what)
}
