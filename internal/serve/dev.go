package serve

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/config"
	"github.com/gatehouse-dev/gatehouse/internal/demo"
	"github.com/gatehouse-dev/gatehouse/internal/notify/slackdev"
	"github.com/gatehouse-dev/gatehouse/internal/term"
	"github.com/gatehouse-dev/gatehouse/internal/version"
)

// DevCommand is development mode: a gate for one machine that needs no set-up.
type DevCommand struct {
	Serve devServeCmd `cmd:"" default:"withargs" help:"Serve; the default command."`
	Env   devEnvCmd   `cmd:"" help:"Print the address and the credentials for a shell."`
}

// Help is shown by dev --help.
func (*DevCommand) Help() string {
	return `
Serves on loopback, with its data in a folder that it makes when needed, and
prints the key of an agent that may propose. The same folder keeps the same key.
A folder without a gatehouse.yaml gets one, with the connector "shop" on a small
ledger of demo data.

Not for production: the administrator's secrets are in dev-credentials.json in
that folder. The log is in gatehouse.log there.

It takes the flags of "gatehouse dev serve":

    --listen 127.0.0.1:8081   serve on another loopback address; port 0 takes
                              any free port
    --data DIR                keep the data in another folder than ./gatehouse-data
    --config FILE             read another configuration than DIR/gatehouse.yaml

Examples:

    gatehouse dev
    gatehouse dev --listen 127.0.0.1:0 --data ./second
    eval "$(gatehouse dev env)"; gatehouse list
`
}

type devServeCmd struct {
	DataFlags
	Listen string `help:"The loopback address to serve on." env:"GATEHOUSE_LISTEN" default:"127.0.0.1:8080" placeholder:"HOST:PORT"`
}

func (*devServeCmd) Help() string {
	return `
Does the same as "gatehouse dev"; see "gatehouse dev --help".

Examples:

    gatehouse dev --listen 127.0.0.1:8081 --data ./other-data
    gatehouse dev serve
`
}

// Run serves until it is interrupted.
func (c *devServeCmd) Run(g *term.IO) error {
	if err := checkLoopback(c.Listen); err != nil {
		return err
	}
	listener, listen, err := bind(g.Ctx, c.Listen)
	if err != nil {
		return err
	}
	defer listener.Close()
	if err := os.MkdirAll(c.Data, 0o700); err != nil {
		return err
	}
	if c.Config == "" {
		if err := demo.PrepareDev(g.Ctx, c.Data); err != nil {
			return err
		}
	}
	cfg, err := c.Load()
	if err != nil {
		return err
	}
	offerPasskeys(&cfg.SignIn, listen)
	log, file, err := logFile(c.Data)
	if err != nil {
		return err
	}
	defer file.Close()
	if err := makeMasterKey(cfg, c.Data); err != nil {
		return err
	}
	n, err := openNodeWith(g.Ctx, c.Data, cfg, devBackplane(cfg, listener, listen), log)
	if err != nil {
		return err
	}
	began := time.Now().Truncate(time.Microsecond)
	creds, err := ensureDev(g.Ctx, n, c.Data)
	if err == nil {
		err = n.Gate.EnsurePolicies(g.Ctx)
	}
	if err != nil {
		return errors.Join(err, n.Close())
	}
	s, err := Start(n, listen)
	if err != nil {
		return err
	}
	creds.URL = s.URL
	if err := creds.write(c.Data); err != nil {
		return errors.Join(err, s.Close())
	}
	log.Info("serving", "url", s.URL, "data", c.Data, "version", version.Number, "mode", "development")
	link, err := firstSetupLink(g.Ctx, n, &creds.Admin)
	if err == nil {
		err = dismissOwn(g.Ctx, n, &creds.Admin, began)
	}
	if err != nil {
		return errors.Join(err, s.Close())
	}
	caught := ""
	switch {
	case n.caught != nil && n.cards != nil:
		caught = "   mail is caught at " + devMailPath + ", Slack cards at " + slackdev.Path
	case n.caught != nil:
		caught = "   mail is caught at " + devMailPath
	case n.cards != nil:
		caught = "   Slack cards are caught at " + slackdev.Path
	}
	if err := c.banner(g, creds, link, caught, s.warnBreakers(g.Ctx)); err != nil {
		return errors.Join(err, s.Close())
	}
	c.warn(g, cfg)
	select {
	case <-g.Ctx.Done():
		log.Info("stopping")
		return s.Close()
	case err := <-s.failed:
		return errors.Join(err, s.Close())
	}
}

// devBackplane catches mails and Slack cards, each unless a channel is configured for it.
func devBackplane(cfg *config.Config, listener net.Listener, listen string) *Backplane {
	b := &Backplane{development: true, caught: &mailCatcher{}, cards: slackdev.New(), listener: listener}
	for _, c := range cfg.Channels {
		switch c.Kind {
		case "email":
			b.caught = nil
		case "slack":
			b.cards = nil
		}
	}
	if b.caught != nil || b.cards != nil {
		b.linkURL = "http://" + listen
	}
	return b
}

// warn prints the unusable parts of the configuration on stderr.
func (c *devServeCmd) warn(g *term.IO, cfg *config.Config) {
	l := &ConfigChecker{}
	l.All(g.Ctx, cfg)
	for _, one := range l.Checks {
		if one.Result == term.CheckFail && g.Ctx.Err() == nil {
			g.Say("%s %s: %s", term.Paint(g.ColorErr, term.Yellow, "warning:"), term.Safe(one.Name),
				term.Safe(one.Detail))
		}
	}
}

// banner prints the server's addresses, its data folder, the agent's key, and a sentence for
// each connector whose breaker is open.
func (c *devServeCmd) banner(
	g *term.IO, creds *devCredentials, link *gatehouse.NewSetupLink, caught string, breakers []string,
) error {
	if g.JSON {
		return g.PrintJSON(map[string]any{
			"version": version.Number, "url": creds.URL, "api": creds.URL + "/api/v1", "key": creds.Agent.Key,
			"data":      c.Data,
			"setup_url": creds.URL + link.Path, "breakers": append([]string{}, breakers...),
		})
	}
	title := term.Paint(g.Color, term.Bold, "Gatehouse "+version.Number)
	stopped := ""
	for _, sentence := range breakers {
		stopped += "├─ Breaker  " + term.Safe(sentence) + "\n"
	}
	_, err := fmt.Fprintf(g.Stdout, `%s — development mode, not for production
├─ Console  %s   (one time, 30 minutes)
├─ API      %s/api/v1   key %s
├─ Data     %s%s
├─ Flags    --listen HOST:PORT  --data DIR  --config FILE
%s└─ Try      %s demo
`, title, creds.URL+link.Path, creds.URL, creds.Agent.Key, term.Safe(term.ShownPath(c.Data)), caught,
		stopped, g.Program())
	return err
}

// checkLoopback refuses addresses that other machines can reach, because this mode
// does not protect its secrets.
func checkLoopback(listen string) error {
	host, _, err := net.SplitHostPort(listen)
	if err != nil {
		return term.Usagef("--listen: %s is not HOST:PORT, such as 127.0.0.1:8080", gatehouse.Quote(listen))
	}
	if ip := net.ParseIP(host); host == "localhost" || ip != nil && ip.IsLoopback() {
		return nil
	}
	return term.Usagef("--listen: development mode serves this machine only, such as on 127.0.0.1:8080; for " +
		"others there is `gatehouse serve`")
}

// bind takes the port before any file is created, and keeps it. It also returns the address with the actual
// port, even if listen has port 0: links and passkeys are bound to that address.
func bind(ctx context.Context, listen string) (net.Listener, string, error) {
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", listen)
	if err != nil {
		return nil, "", portTaken(err, listen)
	}
	host, port, err := net.SplitHostPort(listen)
	if err == nil && port == "0" {
		_, port, err = net.SplitHostPort(l.Addr().String())
	}
	if err != nil {
		return nil, "", errors.Join(err, l.Close())
	}
	return l, net.JoinHostPort(host, port), nil
}

func portTaken(err error, listen string) error {
	if !errors.Is(err, syscall.EADDRINUSE) {
		return err
	}
	return fmt.Errorf(
		"%s is in use, perhaps by another `gatehouse`: stop that server, or use another port, such as --listen 127.0.0.1:0 "+
			"for any free one", listen)
}

// logFile opens the log in the data folder.
func logFile(data string) (*slog.Logger, *os.File, error) {
	f, err := os.OpenFile(filepath.Join(data, "gatehouse.log"), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return nil, nil, err
	}
	return slog.New(slog.NewTextHandler(f, nil)), f, nil
}

type devEnvCmd struct {
	Data string `help:"The data folder." env:"GATEHOUSE_DATA" default:"gatehouse-data" placeholder:"DIR"`
	As   string `help:"Admin decides, reviewer votes second, agent proposes." enum:"admin,reviewer,agent" default:"admin"`
}

func (*devEnvCmd) Help() string {
	return `
Prints variables for a shell to evaluate, so that the commands that follow use the
development server.

Examples:

    eval "$(gatehouse dev env)"
    eval "$(gatehouse dev env --as agent)"
`
}

// Run prints the address and the credentials.
func (c *devEnvCmd) Run(g *term.IO) error {
	creds, err := readDevCredentials(c.Data)
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%s is not a folder of development mode; `gatehouse dev` makes one, and --data names another",
			term.ShownPath(c.Data))
	}
	if err != nil {
		return err
	}
	who := map[string]gatehouse.Credentials{"admin": creds.Admin, "reviewer": creds.Reviewer, "agent": creds.Agent}[c.As]
	if creds.URL == "" || who.Key == "" {
		return fmt.Errorf("nothing was served from %s yet: gatehouse dev --data %s", term.ShownPath(c.Data),
			term.ShownPath(c.Data))
	}
	if g.JSON {
		return g.PrintJSON(map[string]string{"url": creds.URL, "key": who.Key, "edit_token": who.EditToken})
	}
	token := "unset GATEHOUSE_EDIT_TOKEN"
	if who.EditToken != "" {
		token = "export GATEHOUSE_EDIT_TOKEN=" + term.ShellQuote(who.EditToken)
	}
	_, err = fmt.Fprintf(g.Stdout, "export GATEHOUSE_URL=%s\nexport GATEHOUSE_KEY=%s\n%s\n",
		term.ShellQuote(creds.URL), term.ShellQuote(who.Key), token)
	return err
}
