package console

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"

	"github.com/gatehouse-dev/gatehouse"
)

func (c *Console) signinRoutes() []route {
	return []route{
		{pattern: "GET /signin", public: true, handle: c.signinPage},
		{pattern: "GET " + gatehouse.SetupPath, public: true, handle: c.setupPage},
		{pattern: "POST " + gatehouse.SetupPath, public: true, handle: c.redeemSetup},
		{pattern: "GET /signin/oidc/begin/{provider}", public: true, handle: c.beginOIDC},
		{pattern: "GET " + gatehouse.CallbackPath, public: true, handle: c.finishOIDC},
		{pattern: "POST /signin/passkey/begin", public: true, handle: c.beginPasskey},
		{pattern: "POST /signin/passkey/finish", public: true, handle: c.finishPasskey},
		{pattern: "POST /signout", handle: c.signOut},
	}
}

// SignsIn reports whether a request begins a sign-in, for which the server stores a ceremony, or finishes
// one with a secret that may be wrong.
func SignsIn(r *http.Request) (begins, finishes bool) {
	switch r.URL.Path {
	case gatehouse.SetupPath:
		return false, r.Method == http.MethodPost || r.URL.Query().Has("token")
	case "/signin/passkey/begin":
		return true, false
	case "/signin/passkey/finish", gatehouse.CallbackPath:
		return false, true
	}
	return strings.HasPrefix(r.URL.Path, "/signin/oidc/begin/"), false
}

// requireSafeTransport refuses to create a session for a browser that would send it unencrypted over the
// network.
func (v *view) requireSafeTransport() error {
	if v.safeTransport() {
		return nil
	}
	return gatehouse.E(gatehouse.CodeUnsupported,
		"signing in needs https, or this machine's own loopback address; set public_url to the https address")
}

func (c *Console) signinPage(v *view) error {
	if v.person != nil {
		return v.redirect(v.query("next"))
	}
	options, elsewhere := v.signInOptions()
	return v.render(http.StatusOK, "Sign in", "", signinForm(v, options, elsewhere, v.query("next")))
}

// setupPage shows a set-up link without using it up: mail scanners follow links, but only people
// press buttons.
func (c *Console) setupPage(v *view) error {
	token := v.query("token")
	_, person, err := c.cfg.Browser.FindSetupLink(v.ctx, token)
	if err != nil {
		return err
	}
	_, elsewhere := v.signInOptions()
	return v.render(http.StatusOK, "Welcome", "", setupForm(person, token, elsewhere))
}

func (c *Console) redeemSetup(v *view) error {
	if err := v.requireSafeTransport(); err != nil {
		return err
	}
	if err := v.parse(); err != nil {
		return err
	}
	s, err := c.cfg.Browser.RedeemSetupLink(v.ctx, v.form("token"), v.browser())
	if err != nil {
		return err
	}
	return v.signIn(s, "/inbox")
}

func (c *Console) signOut(v *view) error {
	if err := c.cfg.Browser.SignOut(v.ctx); err != nil {
		return err
	}
	v.setCookie(c.sessionCookie(), "", v.now)
	v.setCookie(c.named(plainDevice, secureDevice), "", v.now)
	return v.redirect("/signin")
}

// leave sends the browser to a provider. It answers a form with a page that has a link, because the
// content security policy forbids that a form's redirect leaves this site.
func (v *view) leave(to *gatehouse.Redirect) error {
	v.setCookie(v.c.ceremonyCookie(), to.State, to.ExpiresAt)
	if v.r.Method == http.MethodGet {
		http.Redirect(v.w, v.r, to.URL, http.StatusSeeOther)
		return nil
	}
	return v.render(http.StatusOK, "Continue at your provider", "", leavePage(to.URL))
}

// takeState returns and deletes the browser's cookie for a ceremony.
func (v *view) takeState() string {
	state := v.cookie(v.c.ceremonyCookie())
	v.setCookie(v.c.ceremonyCookie(), "", v.now)
	return state
}

func (c *Console) beginOIDC(v *view) error {
	if err := v.requireSafeTransport(); err != nil {
		return err
	}
	to, err := c.cfg.SignIn.BeginOIDC(v.ctx, v.r.PathValue("provider"), localPath(v.query("next")))
	if err != nil {
		return err
	}
	return v.leave(to)
}

// finishOIDC takes a provider's answer to a sign-in, a link or a step-up.
func (c *Console) finishOIDC(v *view) error {
	if err := v.requireSafeTransport(); err != nil {
		return err
	}
	out, err := c.cfg.SignIn.FinishOIDC(v.ctx, v.takeState(), v.r.URL.Query(), v.browser())
	if err != nil {
		return err
	}
	if out.SignedIn != nil {
		return v.signIn(out.SignedIn, out.ReturnTo)
	}
	return v.redirect(out.ReturnTo)
}

func (c *Console) beginPasskey(v *view) error {
	if err := v.requireSafeTransport(); err != nil {
		return err
	}
	return v.challenge(c.cfg.SignIn.BeginPasskeySignIn(v.ctx))
}

func (c *Console) finishPasskey(v *view) error {
	response, err := v.body()
	if err != nil {
		return err
	}
	s, err := c.cfg.SignIn.FinishPasskeySignIn(v.ctx, v.takeState(), response, v.browser())
	if err != nil {
		return err
	}
	v.setCookie(c.sessionCookie(), s.Token, s.Session.CreatedAt.Add(gatehouse.SessionMax))
	v.rememberDevice(s.Session)
	return v.json(map[string]string{"next": localPath(v.query("next"))})
}

// challenge answers a script with a WebAuthn challenge.
func (v *view) challenge(ch *gatehouse.Challenge, err error) error {
	if err != nil {
		return err
	}
	v.setCookie(v.c.ceremonyCookie(), ch.State, ch.ExpiresAt)
	return v.json(ch.Options)
}

// body reads the request body of a script.
func (v *view) body() ([]byte, error) {
	b, err := io.ReadAll(v.r.Body)
	if tooLarge := (*http.MaxBytesError)(nil); errors.As(err, &tooLarge) {
		return nil, gatehouse.E(gatehouse.CodeBodyTooLarge, "a body has at most 1 MiB")
	}
	if err != nil {
		return nil, gatehouse.E(gatehouse.CodeMalformed, "the body could not be read to its end")
	}
	return b, nil
}

// json answers a script with JSON.
func (v *view) json(value any) error {
	return v.jsonWith(http.StatusOK, value)
}

func (v *view) jsonWith(status int, value any) error {
	b, err := json.Marshal(value)
	if err != nil {
		return err
	}
	v.w.Header().Set("Content-Type", "application/json")
	v.w.WriteHeader(status)
	_, _ = v.w.Write(b)
	return nil
}

// setupPath is a set-up link's page.
func setupPath(token string) string {
	return gatehouse.SetupPath + "?" + url.Values{"token": {token}}.Encode()
}

// beginPath starts a sign-in at a provider.
func beginPath(provider, next string) string {
	return "/signin/oidc/begin/" + url.PathEscape(provider) + "?next=" + url.QueryEscape(localPath(next))
}
