package console

import (
	"net/http"
	"net/url"
	"strings"

	"github.com/gatehouse-dev/gatehouse"
)

const secretsPath = "/settings/secrets"

func (c *Console) secretRoutes() []route {
	if c.cfg.Secrets == nil {
		return nil
	}
	admins := []gatehouse.Role{gatehouse.RoleAdmin}
	return []route{
		{pattern: "GET " + secretsPath, roles: admins, handle: c.secrets},
		{pattern: "POST " + secretsPath, roles: admins, changesRights: true, handle: c.setSecret},
		{pattern: "POST " + secretsPath + "/{secret}/rotate", roles: admins, changesRights: true, handle: c.rotateSecret},
		{pattern: "POST " + secretsPath + "/{secret}/revoke", roles: admins, changesRights: true, handle: c.revokeSecret},
	}
}

// secretsView lists secrets. A value is sent to the server only, never back.
type secretsView struct {
	list []*gatehouse.Secret
	// name is the typed name of a new secret.
	name   string
	failed *gatehouse.Error
}

func (c *Console) secrets(v *view) error { return c.showSecrets(v, http.StatusOK, &secretsView{}) }

func (c *Console) showSecrets(v *view, status int, p *secretsView) error {
	var err error
	if p.list, err = c.cfg.Secrets.ListSecrets(v.ctx); err != nil {
		return err
	}
	return v.render(status, "Secrets", settingsPath, secretListBody(v, p))
}

func (c *Console) setSecret(v *view) error {
	p := &secretsView{}
	err := v.parse()
	if err == nil {
		p.name = strings.TrimSpace(v.form("name"))
		_, err = c.cfg.Secrets.SetSecret(v.ctx, gatehouse.NewSecret{Name: p.name, Value: secretIn(v)})
	}
	return c.secretChanged(v, p, err)
}

func (c *Console) rotateSecret(v *view) error {
	err := v.parse()
	if err == nil {
		n := gatehouse.NewSecret{Name: v.r.PathValue("secret"), Value: secretIn(v)}
		_, err = c.cfg.Secrets.RotateSecret(v.ctx, n)
	}
	return c.secretChanged(v, &secretsView{}, err)
}

func (c *Console) revokeSecret(v *view) error {
	err := v.requireConfirmed()
	if err == nil {
		_, err = c.cfg.Secrets.RevokeSecret(v.ctx, v.r.PathValue("secret"))
	}
	return c.secretChanged(v, &secretsView{}, err)
}

// secretIn reads the value of a form, without the line break that a paste ends with.
// Browsers send line breaks as CR LF.
func secretIn(v *view) string {
	return strings.TrimSuffix(strings.ReplaceAll(v.form("value"), "\r\n", "\n"), "\n")
}

// secretChanged shows the list after a change, with the error of a refused one.
func (c *Console) secretChanged(v *view, p *secretsView, err error) error {
	return v.changed(secretsPath, err, &p.failed, func(status int) error { return c.showSecrets(v, status, p) })
}

func secretPath(name, verb string) string { return secretsPath + "/" + url.PathEscape(name) + verb }

// secretState describes the state of a secret.
func secretState(s *gatehouse.Secret) string {
	switch s.State {
	case gatehouse.SecretMissing:
		return "not set"
	case gatehouse.SecretUnreadable:
		return "cannot be decrypted: it was sealed under another master key"
	}
	return string(s.State)
}

// secretTone is the colour of a state.
func secretTone(s *gatehouse.Secret) string {
	if s.State == gatehouse.SecretSet {
		return "tone-good"
	}
	return "tone-bad"
}
