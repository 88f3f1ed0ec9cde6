package cli

import (
	"context"
	"time"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/serve"
	"github.com/gatehouse-dev/gatehouse/internal/term"
)

// sessionCmd groups the commands about sessions.
type sessionCmd struct {
	List   sessionListCmd   `cmd:"" help:"List signed-in browsers."`
	Revoke sessionRevokeCmd `cmd:"" help:"End a session at once and permanently."`
}

// sessionListCmd lists sessions.
type sessionListCmd struct {
	paging    `embed:""`
	Principal string `placeholder:"NAME" help:"The principal, by name or id; you by default."`
	Everybody bool   `help:"The sessions of everybody in the tenant."`
	Ended     bool   `help:"Also those that have ended."`
}

func (*sessionListCmd) Help() string {
	return `
Lists sessions, the newest first. Piped, the columns are: id, principal, method,
created, last seen, expires, state, browser.

Examples:

    gatehouse session list
    gatehouse session list --everybody --ended --json
`
}

func (c *sessionListCmd) Run(g *globals, api service) error {
	if c.Everybody && c.Principal != "" {
		return term.Usagef("--principal and --everybody exclude each other")
	}
	page, err := collect(g.Ctx, &c.paging,
		func(ctx context.Context, cursor string, limit int) (gatehouse.Page[*gatehouse.Session], error) {
			return api.ListSessions(ctx, gatehouse.SessionFilter{
				Principal: c.Principal, All: c.Everybody, Ended: c.Ended, Cursor: cursor, Limit: limit,
			})
		})
	return showPage(g, page, err, "No sessions.", func() *term.Table { return g.sessionTable(page.Items...) })
}

func (g *globals) sessionTable(sessions ...*gatehouse.Session) *term.Table {
	t := &term.Table{
		Header: []string{"ID", "PRINCIPAL", "METHOD", "CREATED", "LAST SEEN", "EXPIRES", "STATE", "BROWSER"}, Wide: 7,
		Drop: []int{7, 3, 5},
	}
	for _, s := range sessions {
		state := "live"
		switch {
		case s.RevokedAt != nil:
			state = "revoked"
		case !s.Live(time.Now()):
			state = "expired"
		}
		t.Add(s.ID, s.PrincipalID, string(s.Method), g.At(s.CreatedAt), g.At(s.LastSeenAt), g.At(s.ExpiresAt), state,
			s.UserAgent)
	}
	return t
}

// sessionRevokeCmd ends a session.
type sessionRevokeCmd struct {
	ID string `arg:"" help:"The session's id, ses_…."`
}

func (*sessionRevokeCmd) Help() string {
	return `
Ends a session of your own or, for an administrator, anybody's. The session's
next request is refused.

Examples:

    gatehouse session revoke ses_01993b7e
`
}

func (c *sessionRevokeCmd) Run(g *globals, api service) error {
	s, err := api.RevokeSession(g.Ctx, c.ID)
	return show(g, s, err, func() *term.Table { return g.sessionTable(s) })
}

// setupLinkCmd makes a set-up link.
type setupLinkCmd struct {
	Name      string `arg:"" help:"Name or id of a person."`
	PublicURL string `name:"public-url" env:"GATEHOUSE_PUBLIC_URL" placeholder:"URL" help:"The URL at which browsers reach the console; the server's URL by default."`
}

func (*setupLinkCmd) Help() string {
	return `
Prints a link that signs the person in to the console, once, within 30 minutes.
Whoever opens it first is signed in as that person: hand it over as you would a
key. Earlier unused links stop working.

Examples:

    gatehouse principal setup-link ana
    gatehouse principal setup-link ana --public-url https://gate.example.com --json
`
}

func (c *setupLinkCmd) Run(g *globals, api service) error {
	l, err := api.CreateSetupLink(g.Ctx, c.Name)
	if err != nil {
		return err
	}
	base := c.PublicURL
	if base == "" {
		base = g.URL
	}
	shown := shownSetupLink{l.ID, l.PrincipalID, l.Token, serve.SetupURL(base, l), l.ExpiresAt}
	return show(g, shown, nil, func() *term.Table {
		return term.Row([]string{"LINK", "EXPIRES"}, serve.SetupURL(base, l), g.At(l.ExpiresAt))
	})
}

type shownSetupLink struct {
	ID          string    `json:"id"`
	PrincipalID string    `json:"principal_id"`
	Token       string    `json:"setup_token"`
	URL         string    `json:"setup_url"`
	ExpiresAt   time.Time `json:"expires_at"`
}
