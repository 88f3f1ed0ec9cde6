package cli

import (
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

func (g *globals) badURL() error {
	return term.Usagef("%s is not the address of a server, such as %s", gatehouse.Quote(g.URL), defaultURL)
}
