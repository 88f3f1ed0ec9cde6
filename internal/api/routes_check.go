package api

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"time"

	"github.com/gatehouse-dev/gatehouse"
)

const (
	// checkTime bounds one check of the store, and checksPerHour the number of
	// checks of a process, for all callers together: each check reads
	// everything.
	checkTime     = 90 * time.Second
	checksPerHour = 6
)

// heldHeads is the body of POST /doctor.
type heldHeads struct {
	// Held are heads of audit logs that were kept elsewhere.
	Held []gatehouse.LogHead `json:"held,omitempty"`
}

func (s *Server) checkRoutes() []route {
	if s.cfg.Checks == nil {
		return nil
	}
	checks := &storeChecks{service: s.cfg.Checks, time: checkTime, hour: newWindow(checksPerHour)}
	checks.hour.span = time.Hour
	return []route{{
		method: "POST", path: "/doctor", name: "checkStore", tag: tagAudit,
		summary: "Check the whole store against every invariant",
		doc: "The same check as gatehouse doctor --deep, for callers without access to the store: every row of every " +
			"tenant. Nothing is changed. Each replica runs one check at a time, at most six an hour, each for at most 90 " +
			"seconds. If the store needs longer, the answer is unsupported: run gatehouse doctor --deep on the server's host. " +
			"The caller must be of the default tenant; violations in other tenants are counted and not listed.",
		roles: admins, status: http.StatusOK, out: typeOf[gatehouse.StoreCheck](),
		codes:   []gatehouse.Code{gatehouse.CodeUnsupported},
		handler: maybe(body(nil, checks.run)),
	}, {
		method: "GET", path: "/doctor/configuration", name: "checkConfiguration", tag: tagAudit,
		summary: "Check everything that the configuration names",
		doc: "Checks targets, secrets, models, channels and sign-in providers, as gatehouse config check does. Targets " +
			"are called, and nothing is " +
			"changed. Findings are cached for 15 seconds. Connectors that do not serve the caller's tenant are left out; all " +
			"other findings are " +
			"shown in the tenant default only.",
		roles: operators, status: http.StatusOK, out: typeOf[gatehouse.ConfigurationCheck](),
		handler: noBody(func(ctx context.Context, c *call) (reply, error) {
			c.outlast(checkTime)
			return answer(s.cfg.Checks.CheckConfiguration(ctx))
		}),
	}}
}

// storeChecks runs one check at a time, and only a few per hour.
type storeChecks struct {
	service gatehouse.CheckService
	time    time.Duration
	hour    *window
	one     sync.Mutex
}

func (s *storeChecks) run(ctx context.Context, c *call, in *heldHeads) (reply, error) {
	if c.caller.Principal.Tenant != gatehouse.DefaultTenant {
		return reply{},
			gatehouse.E(gatehouse.CodeRoleRequired, "this needs an administrator of the tenant %s", gatehouse.DefaultTenant)
	}
	if !s.one.TryLock() {
		e := gatehouse.E(gatehouse.CodeBusy, "the store is being checked; try again later")
		e.RetryAfter = int(s.time.Seconds())
		return reply{}, e
	}
	defer s.one.Unlock()
	if err := s.hour.take(""); err != nil {
		return reply{}, err
	}
	c.outlast(s.time)
	ctx, cancel := context.WithTimeout(ctx, s.time)
	defer cancel()
	report, err := s.service.CheckStore(ctx, in.Held)
	if err != nil && errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return reply{}, gatehouse.E(gatehouse.CodeUnsupported,
			"the store cannot be checked in %s; run gatehouse doctor --deep on the server's host", gatehouse.Duration(s.time))
	}
	return answer(report, err)
}
