package postgres

import (
	"net"
	"time"
)

// silence is how long a server's host may say nothing to what it was sent, or
// to being asked whether it is there. One that lost its power, or the way to
// us, ends no connection: what waits for it would wait for a quarter of an hour
// or more, long after another server took its place.
const silence = 15 * time.Second

// dialer gives up connections to hosts that have gone. A server that works
// for long at a statement is none: its host answers for it.
func dialer() *net.Dialer {
	return &net.Dialer{
		KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: silence / 3, Interval: silence / 3, Count: 2},
		Control:         boundUnanswered,
	}
}
