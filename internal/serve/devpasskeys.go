package serve

import (
	"net"

	"github.com/gatehouse-dev/gatehouse/internal/config"
)

// offerPasskeys enables passkeys in development mode without configuration, at
// http://localhost: browsers accept passkeys for that name, but not for an IP
// address. The sign-in page at 127.0.0.1 links to http://localhost.
func offerPasskeys(c *config.SignIn, listen string) {
	if c.Passkeys != nil || c.PublicURL != "" {
		return
	}
	_, port, err := net.SplitHostPort(listen)
	if err != nil {
		return
	}
	c.Passkeys = &config.Passkeys{RPID: "localhost", Origins: []string{"http://" + net.JoinHostPort("localhost", port)}}
}
