package serve

import (
	"net"

	"github.com/gatehouse-dev/gatehouse/internal/config"
)

// offerPasskeys lets development mode take passkeys without a word in the
// configuration, at http://localhost: browsers keep them for that name on
// loopback, and for no number. The pages at 127.0.0.1 lead there.
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
