package postgres

import (
	"net"
	"time"
)

// peerTimeout is how long a server's host may leave data or a keep-alive probe unacknowledged.
// A host that lost its power or its network never closes a connection: without this bound,
// callers would wait for a quarter of an hour or more, long after another server took over.
const peerTimeout = 15 * time.Second

// dialer gives up connections to hosts that vanished. A server that works on a long statement
// does not count as vanished: its host still answers probes.
func dialer() *net.Dialer {
	return &net.Dialer{
		KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: peerTimeout / 3, Interval: peerTimeout / 3, Count: 2},
		Control:         setUserTimeout,
	}
}
