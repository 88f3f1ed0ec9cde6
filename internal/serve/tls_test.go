package serve

import "testing"

// TestReachable: an address that is not a loopback address can be reached by other machines.
func TestReachable(t *testing.T) {
	t.Parallel()
	for listen, want := range map[string]bool{
		"127.0.0.1:80": false, "[::1]:80": false, "localhost:80": false,
		":80": true, "0.0.0.0:80": true, "gate:80": true, "192.0.2.1:80": true,
	} {
		if got := reachable(listen); got != want {
			t.Errorf("%s: %v", listen, got)
		}
	}
}
