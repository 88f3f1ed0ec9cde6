package postgres

import (
	"net"
	"path/filepath"
	"testing"

	"github.com/jackc/pgx/v5"
	"golang.org/x/sys/unix"
)

// TestHostsThatVanish: a connection has the socket options that end it after its server's host has lost power,
// with or without unacknowledged data.
func TestHostsThatVanish(t *testing.T) {
	t.Parallel()
	s := openTest(t, Config{})
	for name, config := range map[string]*pgx.ConnConfig{"the pool": s.pool.Config().ConnConfig,
		"the lookup of a COMMIT": s.conn} {
		c, err := config.DialFunc(t.Context(), "tcp", listener(t, "tcp", "127.0.0.1:0"))
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		raw, err := c.(*net.TCPConn).SyscallConn()
		if err != nil {
			t.Fatal(err)
		}
		for option, most := range map[int]int{
			unix.TCP_USER_TIMEOUT: int(peerTimeout.Milliseconds()), unix.TCP_KEEPIDLE: int(peerTimeout.Seconds()),
			unix.TCP_KEEPINTVL: int(peerTimeout.Seconds()),
		} {
			var got int
			if err := raw.Control(
				func(fd uintptr) {
					got, err = unix.GetsockoptInt(
						int(fd), unix.IPPROTO_TCP, option,
					)
				}); err != nil || got <= 0 || got > most {
				t.Errorf("%s: option %d is %d, want 1 to %d: %v", name, option, got, most, err)
			}
		}
	}
	c, err := dialer().DialContext(t.Context(), "unix", listener(t, "unix", filepath.Join(t.TempDir(), "socket")))
	if err != nil {
		t.Fatal("a socket of this machine:", err)
	}
	_ = c.Close()
}

func listener(t *testing.T, network, address string) string {
	t.Helper()
	l, err := net.Listen(network, address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return l.Addr().String()
}
