package stepfunctions

import "github.com/gatehouse-dev/gatehouse/connector"

// List implements [connector.Lister].
func (c *Connector) List() []connector.Listed {
	return connector.ListOf(c, []string{opStart, opSuccess, opFailure}, func(operation string) []string {
		if operation == opStart {
			return []string{stateMachine}
		}
		return []string{execution}
	})
}
