package bench

import _ "embed"

//go:embed policy.yaml
var policySource []byte

// Policy returns the policy of the measured gates: ten rules.
func Policy() []byte { return append([]byte(nil), policySource...) }
