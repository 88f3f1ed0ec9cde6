package serve

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/term"
)

// InitCommand makes a data folder and its administrator.
type InitCommand struct {
	StoreFlags
	Listen           listenAddress `help:"The server's future address, for setup_url; sign_in.public_url of the configuration takes precedence." env:"GATEHOUSE_LISTEN" default:"127.0.0.1:8080" placeholder:"HOST:PORT"`
	KubernetesSecret string        `help:"In a pod: store the secrets in this Secret of the namespace instead of printing them; do nothing if it already holds them, or if there is an administrator and the Secret is missing or empty." placeholder:"NAME"`
	ServiceAccount   string        `help:"Where a pod finds its token, its namespace and the root certificate." default:"/var/run/secrets/kubernetes.io/serviceaccount" hidden:""`
}

// Help is shown by init --help.
func (*InitCommand) Help() string {
	return `Makes a data folder with the tenant "default" and its administrator, and
prints the administrator's API key, edit token and set-up link. They are shown
only once; the link signs in to the console, once, within 30 minutes.

Examples:

    gatehouse init --data ./gatehouse-data --json
    gatehouse init --data ./gatehouse-data --listen 127.0.0.1:9090
    gatehouse init --config gatehouse.yaml --kubernetes-secret gatehouse-admin`
}

// Run makes the data folder.
func (c *InitCommand) Run(g *term.IO) error {
	cfg, err := c.Load()
	if err != nil {
		return err
	}
	var secret *clusterSecret
	var held map[string]string
	if c.KubernetesSecret != "" {
		if secret, err = newClusterSecret(c.KubernetesSecret, c.ServiceAccount); err != nil {
			return err
		}
		if held, err = secret.read(g.Ctx); err != nil || held["admin_key"] != "" {
			return err
		}
	}
	if c.DatabaseURL == "" {
		if err := errors.Join(os.MkdirAll(c.Data, 0o700), makeMasterKey(cfg, c.Data)); err != nil {
			return err
		}
	}
	n, err := c.Open(g.Ctx, cfg, &Backplane{}, slog.New(slog.DiscardHandler))
	if err != nil {
		return err
	}
	if secret != nil {
		if done, err := c.reserve(g, n, secret, held); err != nil || done {
			return errors.Join(err, n.Close())
		}
	}
	creds, err := n.Gate.Bootstrap(g.Ctx)
	if err != nil {
		return initError(errors.Join(err, n.Close()), c.place())
	}
	// The key and the edit token cannot be read again, so an error does not keep them from being handed over.
	var at, token string
	link, err := firstSetupLink(g.Ctx, n, creds)
	if err == nil {
		at, token = SetupURL(cmp.Or(cfg.SignIn.PublicURL, c.Listen.url()), link), link.Token
	}
	err = errors.Join(err, n.Close())
	switch {
	case secret != nil:
		return errors.Join(err, secret.fill(g.Ctx, map[string]string{"admin_key": creds.Key, "edit_token": creds.EditToken,
			"setup_url": at}))
	case g.JSON:
		return errors.Join(err, term.WriteJSON(g.Stdout, initAnswer{adminCredentials{creds.Key, creds.EditToken}, at, token}))
	}
	g.Say("The administrator's secrets, shown only once:")
	_, written := fmt.Fprintf(g.Stdout, "admin_key\t%s\nedit_token\t%s\nsetup_url\t%s\n", creds.Key, creds.EditToken, at)
	if err := errors.Join(err, written); err != nil {
		return err
	}
	g.Say("Next: start the server, and open setup_url in a browser to sign in. For the command line, set " +
		"GATEHOUSE_KEY and\n" +
		"GATEHOUSE_EDIT_TOKEN to the first two, or keep them: gatehouse context add NAME --key … --edit-token …\n" +
		"Create a second person with the role approver: without one, proposals of the administrator and of the agents\n" +
		"that they sponsor are denied.\n" +
		"    gatehouse principal create --name ana --kind person --role approver")
	return nil
}

// reserve reserves the Secret, which holds the given values, for a new administrator. It reports whether there is
// nothing to do, because there is an administrator whose secrets somebody has moved: an upgrade runs init again.
func (c *InitCommand) reserve(
	g *term.IO, n *Node, secret *clusterSecret, held map[string]string,
) (done bool, err error) {
	made, err := administered(g.Ctx, n.Store)
	switch {
	case err != nil:
		return false, err
	case !made:
		return false, secret.reserve(g.Ctx)
	case len(held) > 0:
		return false, gatehouse.E(gatehouse.CodeAlreadyExists, "%s has an administrator already, but the Secret %s does not "+
			"have the key: make a new one with gatehouse admin reset, and delete the Secret", c.place(), secret.name)
	}
	g.Say("Nothing to do: %s has an administrator already, and the Secret %s is missing or empty. If nobody has the "+
		"administrator's secrets: gatehouse admin reset makes new ones.", c.place(), secret.name)
	return true, nil
}

type initAnswer struct {
	adminCredentials
	SetupURL   string `json:"setup_url"`
	SetupToken string `json:"setup_token"`
}

// firstSetupLink makes the administrator's own link.
func firstSetupLink(ctx context.Context, n *Node, creds *gatehouse.Credentials) (*gatehouse.NewSetupLink, error) {
	admin, err := n.Gate.Authenticate(ctx, creds.Key)
	if err != nil {
		return nil, err
	}
	ctx = gatehouse.NewContext(ctx, &gatehouse.Caller{Principal: admin, StepUp: true, Via: gatehouse.ViaCLI})
	return n.Gate.CreateSetupLink(ctx, admin.ID)
}

func initError(err error, place string) error {
	if gatehouse.CodeOf(err) == gatehouse.CodeAlreadyExists {
		return gatehouse.E(gatehouse.CodeAlreadyExists, "%s has an administrator already", place)
	}
	return err
}
