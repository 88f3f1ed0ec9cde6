package console

import (
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/gatehouse-dev/gatehouse"
)

func (c *Console) principalRoutes() []route {
	admins := []gatehouse.Role{gatehouse.RoleAdmin}
	const one = principalsPath + "/{principal}"
	return []route{
		{pattern: "GET " + principalsPath, roles: admins, handle: c.principals},
		{pattern: "GET " + principalsPath + "/new", roles: admins, handle: c.newPrincipal},
		{pattern: "POST " + principalsPath, roles: admins, changesRights: true, handle: c.createPrincipal},
		{pattern: "GET " + one, roles: admins, handle: c.principal},
		{pattern: "POST " + one + "/roles", roles: admins, changesRights: true, handle: c.changeRoles},
		{pattern: "POST " + one + "/disable", roles: admins, changesRights: true, handle: c.disablePrincipal},
		{pattern: "POST " + one + "/enable", roles: admins, changesRights: true, handle: c.enablePrincipal},
		{pattern: "POST " + one + "/keys", roles: admins, changesRights: true, handle: c.createKey},
		{pattern: "POST " + one + "/keys/{key}/revoke", roles: admins, changesRights: true, handle: c.revokeKey},
		{pattern: "POST " + one + "/edit-token", roles: admins, changesRights: true, handle: c.rotateEditToken},
		{pattern: "POST " + one + "/setup-link", roles: admins, changesRights: true, handle: c.makeSetupLink},
		{pattern: "POST " + one + "/sessions/{session}/revoke", roles: admins, handle: c.revokeSession},
		{
			pattern: "POST " + one + "/passkeys/{passkey}/remove", roles: admins, changesRights: true,
			handle: c.removeTheirPasskey,
		},
		{
			pattern: "POST " + one + "/identities/{identity}/unlink", roles: admins, changesRights: true,
			handle: c.unlinkTheirIdentity,
		},
	}
}

const principalsPath = "/settings/principals"

func principalPath(id string) string { return principalsPath + "/" + url.PathEscape(id) }

// principalsView is a page of the list; names maps the sponsors' ids to their names.
type principalsView struct {
	list  []*gatehouse.Principal
	names map[string]string
	first string
	next  string
}

func (c *Console) principals(v *view) error {
	page, err := c.cfg.Admin.ListPrincipals(v.ctx, v.query("cursor"), gatehouse.DefaultLimit)
	if err != nil {
		return err
	}
	p := &principalsView{list: page.Items, names: make(map[string]string)}
	for _, x := range page.Items {
		p.names[x.ID] = x.Name
	}
	for _, x := range page.Items {
		if _, known := p.names[x.Sponsor]; x.Sponsor != "" && !known {
			if p.names[x.Sponsor], err = c.principalName(v, x.Sponsor); err != nil {
				return err
			}
		}
	}
	if v.query("cursor") != "" {
		p.first = principalsPath
	}
	if page.NextCursor != "" {
		p.next = principalsPath + "?" + url.Values{"cursor": {page.NextCursor}}.Encode()
	}
	return v.render(http.StatusOK, "Principals", settingsPath, principalsBody(v, p))
}

// principalName is the name of the principal with an id, "" for none.
func (c *Console) principalName(v *view, id string) (string, error) {
	if id == "" {
		return "", nil
	}
	s, err := c.cfg.Admin.FindPrincipal(v.ctx, id)
	if err != nil {
		return "", err
	}
	return s.Name, nil
}

// principalForm is the form for a new principal.
type principalForm struct {
	ask  gatehouse.NewPrincipal
	once string
	// tenants are the tenants that the caller may choose from, nil for their own only.
	tenants []*gatehouse.Tenant
	failed  *gatehouse.Error
}

func (c *Console) newPrincipal(v *view) error {
	return c.showPrincipalForm(v, http.StatusOK, &principalForm{
		ask: gatehouse.NewPrincipal{Kind: gatehouse.KindPerson, Tenant: v.query("tenant")}, once: v.requestID,
	})
}

func (c *Console) showPrincipalForm(v *view, status int, f *principalForm) error {
	if f.ask.Tenant == "" {
		f.ask.Tenant = v.person.Tenant
	}
	var err error
	if f.tenants, err = c.tenantsOf(v); err != nil {
		return err
	}
	return v.render(status, "New principal", settingsPath, principalFormBody(v, f))
}

func (c *Console) createPrincipal(v *view) error {
	if err := v.parse(); err != nil {
		return err
	}
	f := &principalForm{once: v.form("once"), ask: gatehouse.NewPrincipal{
		Tenant: v.form("tenant"), Name: strings.TrimSpace(v.form("name")), Kind: gatehouse.Kind(v.form("kind")),
		Roles: v.formRoles(), Sponsor: strings.TrimSpace(v.form("sponsor")), Person: strings.TrimSpace(v.form("person")),
	}}
	if f.ask.Tenant == "" {
		f.ask.Tenant = v.person.Tenant
	}
	made, err := c.cfg.Admin.CreatePrincipal(v.onceSecret("principal"), f.ask)
	if err != nil {
		f.failed = asError(shownBefore(err))
		if f.failed.Code == gatehouse.CodeInternal {
			return err
		}
		return c.showPrincipalForm(v, gatehouse.StatusOf(f.failed.Code), f)
	}
	p := credentialsPage{
		title: f.ask.Name + " can start", back: principalPath(made.ID),
		meaning: "Give these only to " + f.ask.Name + ". The key's id is " + made.KeyID + ".",
		secrets: []secret{{"Key", made.Key}},
	}
	if made.EditToken != "" {
		p.secrets = append(p.secrets, secret{"Edit token, for deciding outside the console", made.EditToken})
		p.next, p.nextMeans = "gatehouse principal setup-link "+f.ask.Name,
			"For this person's first sign-in, make a set-up link on the next page, or with:"
	}
	if f.ask.Tenant != v.person.Tenant {
		p.back = tenantsPath
		p.meaning += " The tenant is " + f.ask.Tenant + "; its own administrators manage the principal from now on."
		p.nextMeans = "For this person's first sign-in, make a set-up link with the key of an administrator of that tenant:"
	}
	return v.showCredentials(p)
}

// formRoles are the ticked roles, as they were posted.
func (v *view) formRoles() []gatehouse.Role {
	roles := []gatehouse.Role{}
	for _, r := range v.r.PostForm["role"] {
		roles = append(roles, gatehouse.Role(r))
	}
	return roles
}

// principalView is a principal's page.
type principalView struct {
	access
	who     *gatehouse.Principal
	sponsor string
	// person is the person behind the principal, if that is another principal.
	person string
	self   bool
	// roles and newSponsor are the values in the form of the roles.
	roles      []gatehouse.Role
	newSponsor string
	failed     *gatehouse.Error
}

func (c *Console) principal(v *view) error {
	p, err := c.principalView(v)
	if err != nil {
		return err
	}
	return v.render(http.StatusOK, p.who.Name, settingsPath, principalBody(v, p))
}

func (c *Console) principalView(v *view) (*principalView, error) {
	who, err := c.principalInPath(v)
	if err != nil {
		return nil, err
	}
	p := &principalView{who: who, self: who.ID == v.person.ID}
	if p.access, err = c.access(v, who, principalPath(who.ID)); err != nil {
		return nil, err
	}
	if p.sponsor, err = c.principalName(v, who.Sponsor); err != nil {
		return nil, err
	}
	if who.Person != who.ID {
		p.person, err = c.principalName(v, who.Person)
	}
	p.roles, p.newSponsor = who.Roles, p.sponsor
	return p, err
}

// principalInPath finds the principal in the path.
func (c *Console) principalInPath(v *view) (*gatehouse.Principal, error) {
	return c.cfg.Admin.FindPrincipal(v.ctx, v.r.PathValue("principal"))
}

// principalRefused shows the principal's present state with the error.
func (c *Console) principalRefused(v *view, err error) error {
	e := refusalOf(err)
	if e == nil {
		return err
	}
	p, found := c.principalView(v)
	if found != nil {
		return found
	}
	if p.failed = e; strings.HasSuffix(v.r.URL.Path, "/roles") {
		p.roles, p.newSponsor = v.formRoles(), v.form("sponsor")
	}
	return v.render(gatehouse.StatusOf(e.Code), p.who.Name, settingsPath, principalBody(v, p))
}

// change runs a change of the principal in the path and returns to its page.
func (c *Console) change(v *view, section string, sure bool, fn func(*gatehouse.Principal) error) error {
	if err := v.read(sure); err != nil {
		return c.principalRefused(v, err)
	}
	who, err := c.principalInPath(v)
	if err == nil {
		err = fn(who)
	}
	if err != nil {
		return c.principalRefused(v, err)
	}
	return v.redirect(principalPath(who.ID) + section)
}

func (c *Console) update(v *view, who *gatehouse.Principal, r gatehouse.PrincipalChange) error {
	_, err := c.cfg.Admin.UpdatePrincipal(v.ctx, who.ID, r)
	return err
}

func (c *Console) changeRoles(v *view) error {
	return c.change(v, "", false, func(who *gatehouse.Principal) error {
		roles := v.formRoles()
		r := gatehouse.PrincipalChange{Roles: &roles}
		if who.Kind == gatehouse.KindAgent {
			sponsor := strings.TrimSpace(v.form("sponsor"))
			r.Sponsor = &sponsor
		}
		return c.update(v, who, r)
	})
}

func (c *Console) disablePrincipal(v *view) error {
	yes := true
	return c.change(v, "", true, func(who *gatehouse.Principal) error {
		return c.update(v, who, gatehouse.PrincipalChange{Disabled: &yes})
	})
}

func (c *Console) enablePrincipal(v *view) error {
	no := false
	return c.change(v, "", false, func(who *gatehouse.Principal) error {
		return c.update(v, who, gatehouse.PrincipalChange{Disabled: &no})
	})
}

func (c *Console) revokeKey(v *view) error {
	return c.change(v, "#keys", true, func(who *gatehouse.Principal) error {
		keys, err := c.cfg.Admin.ListKeys(v.ctx, who.ID)
		if err != nil {
			return err
		}
		id := v.r.PathValue("key")
		if !slices.ContainsFunc(keys, func(k *gatehouse.Key) bool { return k.ID == id }) {
			return gatehouse.E(gatehouse.CodeNotFound, "no such key")
		}
		return c.cfg.Admin.RevokeKey(v.ctx, id)
	})
}

func (c *Console) revokeSession(v *view) error {
	return c.change(v, "#sessions", true, func(who *gatehouse.Principal) error {
		if err := c.checkSessionOf(v, who.ID); err != nil {
			return err
		}
		_, err := c.cfg.Sessions.RevokeSession(v.ctx, v.r.PathValue("session"))
		return err
	})
}

func (c *Console) removeTheirPasskey(v *view) error {
	return c.change(v, "#passkeys", true, func(who *gatehouse.Principal) error { return c.removePasskey(v, who.ID) })
}

func (c *Console) unlinkTheirIdentity(v *view) error {
	return c.change(v, "#identities", true, func(who *gatehouse.Principal) error {
		return c.unlink(v, who.ID, c.cfg.Browser.UnlinkIdentity)
	})
}

// reveal creates a secret for the principal in the path, and shows it.
func (c *Console) reveal(v *view, sure bool, create func(*gatehouse.Principal) (credentialsPage, error)) error {
	if err := v.read(sure); err != nil {
		return c.principalRefused(v, err)
	}
	who, err := c.principalInPath(v)
	if err != nil {
		return err
	}
	p, err := create(who)
	if err != nil {
		return c.principalRefused(v, shownBefore(err))
	}
	p.back = principalPath(who.ID)
	return v.showCredentials(p)
}

func (c *Console) createKey(v *view) error {
	return c.reveal(v, false, func(who *gatehouse.Principal) (credentialsPage, error) {
		made, err := c.cfg.Admin.CreateKey(v.onceSecret("key"), who.ID)
		if err != nil {
			return credentialsPage{}, err
		}
		return credentialsPage{
			title: "A new key for " + who.Name, secrets: []secret{{"Key", made.Key}},
			meaning: "Anyone with this key can act as " + who.Name + ". Its id is " + made.KeyID + ".",
		}, nil
	})
}

func (c *Console) rotateEditToken(v *view) error {
	return c.reveal(v, true, func(who *gatehouse.Principal) (credentialsPage, error) {
		made, err := c.cfg.Admin.RotateEditToken(v.onceSecret("edit token"), who.ID)
		if err != nil {
			return credentialsPage{}, err
		}
		return credentialsPage{
			title: "A new edit token for " + who.Name, secrets: []secret{{"Edit token", made.EditToken}},
			meaning: "The old token no longer works. Give the new one only to " + who.Name +
				": together with their key, it decides in their name.",
		}, nil
	})
}

func (c *Console) makeSetupLink(v *view) error {
	return c.reveal(v, false, func(who *gatehouse.Principal) (credentialsPage, error) {
		made, err := c.cfg.Sessions.CreateSetupLink(v.onceSecret("setup link"), who.ID)
		if err != nil {
			return credentialsPage{}, err
		}
		return credentialsPage{
			title: "A set-up link for " + who.Name, secrets: []secret{{"Set-up link", v.origin() + made.Path}},
			meaning: "It signs one browser in as " + who.Name + ", once. Their earlier unused links no longer work.",
			until:   clock(made.ExpiresAt),
		}, nil
	})
}

// origin is this server's origin as the browser sees it.
func (v *view) origin() string {
	if v.c.cfg.PublicURL != "" {
		return strings.TrimSuffix(v.c.cfg.PublicURL, "/")
	}
	if v.c.cfg.TLS {
		return "https://" + v.r.Host
	}
	return "http://" + v.r.Host
}

// refusedRole says why a kind of principal cannot hold a role; "" if it can, or if the kind is still open.
func refusedRole(kind gatehouse.Kind, r gatehouse.Role) string {
	p := gatehouse.Principal{Name: "x", Kind: kind, Roles: []gatehouse.Role{r}}
	switch {
	case kind == "" || p.Validate() == nil:
		return ""
	case r == gatehouse.RoleEvaluator:
		return "for services only"
	case kind == gatehouse.KindAgent:
		return "never for an agent"
	}
	return "for people only"
}

// roleMeaning says what a role permits.
func roleMeaning(r gatehouse.Role) string {
	return map[gatehouse.Role]string{
		gatehouse.RoleProposer:  "proposes changes",
		gatehouse.RoleApprover:  "decides on what others propose",
		gatehouse.RoleOperator:  "sends due pushes, and settles unknown outcomes",
		gatehouse.RoleAuditor:   "reads and verifies the log",
		gatehouse.RoleViewer:    "reads only; cannot be combined with other roles",
		gatehouse.RoleWorker:    "carries out changes as a pull worker",
		gatehouse.RoleEvaluator: "evaluates pending changes under its own name; for a service, without other roles",
		gatehouse.RoleAdmin:     "manages principals and policies; implies approver, operator and auditor",
	}[r]
}

// kindMeaning says what a kind of principal is for.
func kindMeaning(k gatehouse.Kind) string {
	switch k {
	case gatehouse.KindPerson:
		return "signs in, and may decide"
	case gatehouse.KindAgent:
		return "proposes, and never decides; a person answers for it"
	case gatehouse.KindService:
		return "a program that works for the gate, such as a pull worker"
	}
	return ""
}

// rolesTakeEffect says when a change of roles counts. Only people vote.
func rolesTakeEffect(k gatehouse.Kind) string {
	if k == gatehouse.KindPerson {
		return "Takes effect at once, also for votes on open questions."
	}
	return "Takes effect at once."
}

// whileDisabled says what a disabled principal cannot do.
func whileDisabled(k gatehouse.Kind) string {
	if k == gatehouse.KindPerson {
		return "Keys and sign-in are refused, and votes do not count."
	}
	return "Its keys are refused."
}

// onceDisabled says what disabling a principal does.
func onceDisabled(k gatehouse.Kind) string {
	switch k {
	case gatehouse.KindPerson:
		return "Keys and sign-in are refused at once, all sessions end, and votes on open questions stop counting."
	case gatehouse.KindAgent:
		return "Its keys are refused at once, and its grants and mandates end."
	}
	return "Its keys are refused at once."
}
