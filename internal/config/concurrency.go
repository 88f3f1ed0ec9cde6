package config

import "strconv"

// concurrencyKey is the key of a connector's limit of calls under way.
const concurrencyKey = "concurrency"

// maxConcurrency is the largest limit that a connector can have.
const maxConcurrency = 1000

// CallLimit is how many calls of the connector may be under way in one process; 0 is no limit.
// NetSuite refuses calls above the limit of an account, so its connectors always have a limit.
func (c Connector) CallLimit() int {
	if c.Concurrency == 0 && c.Type == "netsuite" {
		return 2
	}
	return int(c.Concurrency)
}

// concurrencyProblem says what is wrong with the limit; "" for nothing.
func (c Connector) concurrencyProblem() string {
	switch {
	case c.Concurrency < 0 || c.Concurrency > maxConcurrency:
		return "must be 1 to " + strconv.Itoa(maxConcurrency)
	case c.Concurrency > 0 && (c.Type == "worker" || c.Type == "mcp"):
		return "is not for the type " + c.Type + ": other programs make its calls, as many as they lease"
	}
	return ""
}
