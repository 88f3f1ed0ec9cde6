package cli

import (
	"net/url"
	"strings"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/client"
	"github.com/gatehouse-dev/gatehouse/internal/term"
)

// service is the API that the client commands call.
type service interface {
	gatehouse.ActionService
	gatehouse.DispatchService
	gatehouse.AdminService
	gatehouse.PolicyService
	gatehouse.AuditService
	gatehouse.SessionService
	gatehouse.RunService
	gatehouse.CheckService
	gatehouse.KeeperService
	gatehouse.NoticeService
	gatehouse.NotificationService
	gatehouse.BounceService
	gatehouse.LinkKeyService
	gatehouse.SecretService
	gatehouse.DelegationService
	gatehouse.GrantService
	gatehouse.DeviceService
	gatehouse.PreferenceService
	gatehouse.MandateService
	gatehouse.ConnectorService
	gatehouse.InsightService
	gatehouse.TargetService
	gatehouse.EvaluationService
}

// connect makes the client. It sends no request yet.
func (g *globals) connect() (service, error) {
	if err := g.resolve(); err != nil {
		return nil, err
	}
	c, err := client.New(g.URL, g.Key, client.WithEditToken(g.EditToken), client.WithChannel(gatehouse.ViaCLI))
	if err != nil {
		return nil, g.badURL()
	}
	return c, nil
}

// badURL is the error of a URL that no client can use. It shows no password.
func (g *globals) badURL() error {
	from := "--url (or GATEHOUSE_URL)"
	if g.savedURL {
		from = "the context's URL"
	}
	u, err := url.Parse(g.URL)
	if err != nil || u.User == nil && strings.Contains(g.URL, "@") {
		return term.Usagef("%s is not the address of a server, such as %s", from, defaultURL)
	}
	u.RawQuery, u.Fragment = "", "" // they can hold a password, too
	return term.Usagef("%s: %s is not the address of a server, such as %s", from, gatehouse.Quote(u.Redacted()),
		defaultURL)
}
