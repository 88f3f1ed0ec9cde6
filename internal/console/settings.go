package console

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/gatehouse-dev/gatehouse"
)

// Self lets people manage their own keys, edit token and sessions. Adding a credential requires a
// fresh sign-in or the person's edit token.
type Self interface {
	// ShowEditToken checks the edit token of a request. The returned context holds the result, also
	// for a wrong token: see TokenShown and TokenWrong of [gatehouse.Caller].
	ShowEditToken(ctx context.Context, token string) (context.Context, error)
	CreateOwnKey(ctx context.Context, editToken string) (*gatehouse.Credentials, error)
	RevokeOwnKey(ctx context.Context, keyID string) error
	RotateOwnEditToken(ctx context.Context, editToken string) (*gatehouse.Credentials, error)
	// EndOtherSessions ends all sessions of the caller except the present one, and returns their
	// number.
	EndOtherSessions(ctx context.Context) (int, error)
}

func (c *Console) settingsRoutes() []route {
	return slices.Concat([]route{
		{pattern: "GET /settings", handle: c.settings},
		{pattern: "POST /settings/sessions/{session}/revoke", handle: c.revokeOwnSession},
		{pattern: "POST /settings/sessions/revoke-others", handle: c.revokeOtherSessions},
		{pattern: "POST /settings/passkeys/begin", handle: c.addPasskeyBegin},
		{pattern: "POST /settings/passkeys/finish", handle: c.addPasskeyFinish},
		{pattern: "POST /settings/passkeys/{passkey}/remove", handle: c.removeOwnPasskey},
		{pattern: "POST /settings/identities/link", handle: c.linkIdentity},
		{pattern: "POST /settings/slack/code", changesRights: true, handle: c.slackCode},
		{pattern: "POST /settings/slack/{identity}/unlink", handle: c.unlinkSlack},
		{pattern: "POST /settings/edit-token", handle: c.rotateOwnEditToken},
		{pattern: "POST /settings/keys", handle: c.createOwnKey},
		{pattern: "POST /settings/keys/{key}/revoke", handle: c.revokeOwnKey},
	}, c.principalRoutes(), c.groupRoutes(), c.delegationRoutes(), c.grantRoutes(), c.deviceRoutes(),
		c.mandateRoutes(), c.connectorRoutes(), c.secretRoutes(), c.tenantRoutes(),
		c.noticeRoutes(), c.messageRoutes())
}

// settingsTab is a page of the settings.
type settingsTab struct {
	path, label string
	shown       bool
}

// settingsTabs are the pages of the settings that a person may see.
func settingsTabs(v *view) []settingsTab {
	cfg, admin := v.c.cfg, v.has(gatehouse.RoleAdmin)
	decides, operates := admin || v.has(gatehouse.RoleApprover), admin || v.has(gatehouse.RoleOperator)
	return slices.DeleteFunc([]settingsTab{
		{settingsPath, "You", true},
		{devicesPath, "Notifications", cfg.Devices != nil},
		{delegationsPath, "Delegations", cfg.Delegations != nil && decides},
		{grantsPath, "Grants", cfg.Grants != nil && decides},
		{mandatesPath, "Mandates", cfg.Mandates != nil && decides},
		{connectorsPath, "Connectors", cfg.Connectors != nil && operates},
		{principalsPath, "Principals", admin},
		{groupsPath, "Groups", admin},
		{tenantsPath, "Tenants", admin && v.managesTenants()},
		{secretsPath, "Secrets", admin && cfg.Secrets != nil},
		{providersPath, "Sign-in", admin},
		{noticesPath, "Changes", admin},
		{messagesPath, "Messages", v.has(gatehouse.RoleOperator, gatehouse.RoleAuditor)},
	}, func(t settingsTab) bool { return !t.shown })
}

// access lists a principal's credentials, for the person's own settings and for an administrator's
// page of the principal.
type access struct {
	// base is the path prefix of the forms' targets.
	base       string
	own        bool
	sessions   []*gatehouse.Session
	more       string // leads to more sessions
	passkeys   []*gatehouse.Passkey
	identities []*gatehouse.ExternalIdentity
	keys       []*gatehouse.Key
	// once is the forms' idempotency key: a second press of a button repeats the same request.
	once string
}

// settingsView is a person's own settings page.
type settingsView struct {
	access
	options gatehouse.SignInOptions
	// elsewhere is the address at which passkeys can be added, if not here.
	elsewhere string
	// recentSignIn says that the sign-in is recent enough to add a credential without further proof.
	recentSignIn bool
	said         string
	failed       *gatehouse.Error
}

const settingsPath = "/settings"

func (c *Console) settings(v *view) error {
	p, err := c.settingsView(v)
	if err != nil {
		return err
	}
	return v.render(http.StatusOK, "Settings", settingsPath, settingsBody(v, p))
}

func (c *Console) settingsView(v *view) (*settingsView, error) {
	options, elsewhere := v.signInOptions()
	p := &settingsView{options: options, elsewhere: elsewhere, recentSignIn: v.recentSignIn()}
	var err error
	p.access, err = c.access(v, v.person, settingsPath)
	return p, err
}

// access lists a principal's credentials. Only people have credentials to sign in with.
func (c *Console) access(v *view, who *gatehouse.Principal, base string) (access, error) {
	a := access{base: base, own: base == settingsPath, once: v.requestID}
	var err error
	if a.keys, err = c.cfg.Admin.ListKeys(v.ctx, who.ID); err != nil || who.Kind != gatehouse.KindPerson {
		return a, err
	}
	page, err := c.cfg.Sessions.ListSessions(v.ctx,
		gatehouse.SessionFilter{Principal: who.ID, Cursor: v.query("sessions")})
	if err != nil {
		return a, err
	}
	a.sessions = page.Items
	if page.NextCursor != "" {
		a.more = base + "?" + url.Values{"sessions": {page.NextCursor}}.Encode()
	}
	if a.passkeys, err = c.cfg.Browser.ListPasskeys(v.ctx, who.ID); err != nil {
		return a, err
	}
	a.identities, err = c.cfg.Browser.ListIdentities(v.ctx, who.ID)
	return a, err
}

// settingsRefused shows the page's present state with the error.
func (c *Console) settingsRefused(v *view, err error) error {
	e := refusalOf(err)
	if e == nil {
		return err
	}
	p, found := c.settingsView(v)
	if found != nil {
		return found
	}
	p.failed = e
	return v.render(gatehouse.StatusOf(e.Code), "Settings", settingsPath, settingsBody(v, p))
}

// requireConfirmed checks the confirmation box of a form that removes something.
func (v *view) requireConfirmed() error {
	if err := v.parse(); err != nil {
		return err
	}
	if v.form("sure") != "yes" {
		return gatehouse.E(gatehouse.CodeInvalid, "tick the box to confirm; nothing was changed")
	}
	return nil
}

// read reads a form, with its confirmation box if sure is set.
func (v *view) read(sure bool) error {
	if sure {
		return v.requireConfirmed()
	}
	return v.parse()
}

// changeOwn makes a confirmed change, and returns to a section of the page.
func (c *Console) changeOwn(v *view, section string, fn func() error) error {
	err := v.requireConfirmed()
	if err == nil {
		err = fn()
	}
	if err != nil {
		return c.settingsRefused(v, err)
	}
	return v.redirect(settingsPath + section)
}

func (c *Console) revokeOwnSession(v *view) error {
	return c.changeOwn(v, "#sessions", func() error {
		// An administrator may end anybody's sessions, but this page ends only one's own.
		if err := c.checkSessionOf(v, v.person.ID); err != nil {
			return err
		}
		_, err := c.cfg.Sessions.RevokeSession(v.ctx, v.r.PathValue("session"))
		return err
	})
}

// checkSessionOf returns an error unless the session in the path belongs to the principal.
func (c *Console) checkSessionOf(v *view, principal string) error {
	for cursor := ""; ; {
		page, err := c.cfg.Sessions.ListSessions(v.ctx,
			gatehouse.SessionFilter{Principal: principal, Ended: true, Cursor: cursor, Limit: gatehouse.MaxLimit})
		if err != nil {
			return err
		}
		for _, s := range page.Items {
			if s.ID == v.r.PathValue("session") {
				return nil
			}
		}
		if cursor = page.NextCursor; cursor == "" {
			return gatehouse.E(gatehouse.CodeNotFound, "no such session")
		}
	}
}

func (c *Console) revokeOtherSessions(v *view) error {
	if err := v.requireConfirmed(); err != nil {
		return c.settingsRefused(v, err)
	}
	n, err := c.cfg.Self.EndOtherSessions(v.ctx)
	if err != nil {
		return c.settingsRefused(v, err)
	}
	p, err := c.settingsView(v)
	if err != nil {
		return err
	}
	p.said = plural(n, "other session has", "other sessions have") + " ended"
	return v.render(http.StatusOK, "Settings", settingsPath, settingsBody(v, p))
}

// addPasskeyBegin answers a script with the challenge for the authenticator.
func (c *Console) addPasskeyBegin(v *view) error {
	if err := v.requireSafeTransport(); err != nil {
		return err
	}
	if err := v.parse(); err != nil {
		return err
	}
	return v.challenge(
		c.cfg.SignIn.BeginPasskeyRegistration(v.ctx, strings.TrimSpace(v.form("name")), v.form("edit_token")))
}

func (c *Console) addPasskeyFinish(v *view) error {
	response, err := v.body()
	if err != nil {
		return err
	}
	if _, err := c.cfg.SignIn.FinishPasskeyRegistration(v.ctx, v.takeState(), response); err != nil {
		return err
	}
	return v.json(map[string]string{"status": "added"})
}

func (c *Console) removeOwnPasskey(v *view) error {
	return c.changeOwn(v, "#passkeys", func() error { return c.removePasskey(v, v.person.ID) })
}

// removePasskey removes the passkey in the path, if it belongs to the principal.
func (c *Console) removePasskey(v *view, principal string) error {
	list, err := c.cfg.Browser.ListPasskeys(v.ctx, principal)
	if err != nil {
		return err
	}
	id := v.r.PathValue("passkey")
	if !slices.ContainsFunc(list, func(k *gatehouse.Passkey) bool { return k.ID == id }) {
		return gatehouse.E(gatehouse.CodeNotFound, "no such passkey")
	}
	return c.cfg.Browser.RemovePasskey(v.ctx, id)
}

// linkIdentity redirects the browser to a provider, to link the identity there.
func (c *Console) linkIdentity(v *view) error {
	if err := v.requireSafeTransport(); err != nil {
		return err
	}
	if err := v.parse(); err != nil {
		return err
	}
	to, err := c.cfg.SignIn.BeginOIDCLink(v.ctx, v.form("provider"), v.form("edit_token"), settingsPath)
	if err != nil {
		return c.settingsRefused(v, err)
	}
	return v.leave(to)
}

// identityID is a URL-safe name for an identity: a provider's subject may contain characters that
// do not survive a form.
func identityID(i *gatehouse.ExternalIdentity) string {
	sum := sha256.Sum256([]byte(i.Issuer + "\x00" + i.Subject))
	return hex.EncodeToString(sum[:16])
}

// unlink removes the identity in the path, if it belongs to the principal.
func (c *Console) unlink(
	v *view, principal string, remove func(ctx context.Context, issuer, subject string) error,
) error {
	list, err := c.cfg.Browser.ListIdentities(v.ctx, principal)
	if err != nil {
		return err
	}
	for _, i := range list {
		if identityID(i) == v.r.PathValue("identity") {
			return remove(v.ctx, i.Issuer, i.Subject)
		}
	}
	return gatehouse.E(gatehouse.CodeNotFound, "no such identity")
}

func (c *Console) rotateOwnEditToken(v *view) error {
	if err := v.requireConfirmed(); err != nil {
		return c.settingsRefused(v, err)
	}
	made, err := c.cfg.Self.RotateOwnEditToken(v.onceSecret("own edit token"), v.form("edit_token"))
	if err != nil {
		return c.settingsRefused(v, shownBefore(err))
	}
	return v.showCredentials(credentialsPage{
		title: "Your new edit token", back: settingsPath + "#edit-token",
		meaning: "The old token no longer works. Together with your key, the new one lets your programs decide.",
		secrets: []secret{{"Edit token", made.EditToken}},
	})
}

func (c *Console) createOwnKey(v *view) error {
	if err := v.parse(); err != nil {
		return err
	}
	made, err := c.cfg.Self.CreateOwnKey(v.onceSecret("own key"), v.form("edit_token"))
	if err != nil {
		return c.settingsRefused(v, shownBefore(err))
	}
	return v.showCredentials(credentialsPage{
		title: "Your new key", back: settingsPath + "#keys",
		meaning: "Anyone with this key can act as you, except where your edit token is needed. Its id is " + made.KeyID + ".",
		secrets: []secret{{"Key", made.Key}},
	})
}

func (c *Console) revokeOwnKey(v *view) error {
	return c.changeOwn(v, "#keys", func() error { return c.cfg.Self.RevokeOwnKey(v.ctx, v.r.PathValue("key")) })
}

// secret is a value that is shown once.
type secret struct{ label, value string }

// credentialsPage answers the form that created secrets. It has no URL: posting the form again is
// refused.
type credentialsPage struct {
	title, meaning, back string
	secrets              []secret
	// next is a command for the next step, nextMeans explains it, and until says when the secrets expire.
	next, nextMeans, until string
}

func (v *view) showCredentials(p credentialsPage) error {
	return v.render(http.StatusOK, p.title, settingsPath, credentialsBody(p))
}

// onceSecret is [view.once] for a form that creates a secret: the store remembers that a secret was
// created, but not the secret.
func (v *view) onceSecret(route string) context.Context {
	ctx := v.once(route, v.form("once"), v.r.URL.Path)
	if c, err := gatehouse.CallerFrom(ctx); err == nil && c.Idempotency != nil {
		c.Idempotency.Encode = func(any) ([]byte, error) { return json.Marshal(struct{}{}) }
	}
	return ctx
}

// shownBefore explains the error when a form was sent twice.
func shownBefore(err error) error {
	var replay *gatehouse.Replay
	if errors.As(err, &replay) {
		return gatehouse.E(gatehouse.CodeAlreadyExists,
			"this form was sent before: its result was shown then, and is not shown again; if you did not save it, create "+
				"another")
	}
	return err
}

// signInWord says how a session began.
func signInWord(m gatehouse.SignInMethod) string {
	switch m {
	case gatehouse.SignInSetup:
		return "set-up link"
	case gatehouse.SignInOIDC:
		return "sign-in provider"
	case gatehouse.SignInPasskey:
		return "passkey"
	}
	return string(m)
}

// browserWord guesses the common name of a browser from its User-Agent header. The page also shows the
// header.
func browserWord(agent string) string {
	name, system := "A browser", ""
	for _, x := range [][2]string{{"Edg/", "Edge"}, {"EdgA/", "Edge"}, {"EdgiOS/", "Edge"}, {"OPR/", "Opera"},
		{"Firefox/", "Firefox"}, {"FxiOS/", "Firefox"}, {"Chrome/", "Chrome"}, {"CriOS/", "Chrome"}, {"Safari/", "Safari"}} {
		if strings.Contains(agent, x[0]) {
			name = x[1]
			break
		}
	}
	for _, x := range [][2]string{{"iPhone", "iPhone"}, {"iPad", "iPad"}, {"Android", "Android"}, {"Windows", "Windows"},
		{"Mac OS X", "macOS"}, {"Linux", "Linux"}} {
		if strings.Contains(agent, x[0]) {
			system = " on " + x[1]
			break
		}
	}
	return name + system
}

// liveKeys separates a principal's valid keys from the ended ones.
func liveKeys(keys []*gatehouse.Key) (live, ended []*gatehouse.Key) {
	for _, k := range keys {
		if k.RevokedAt == nil {
			live = append(live, k)
		} else {
			ended = append(ended, k)
		}
	}
	return live, ended
}
