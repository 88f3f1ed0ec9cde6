package idptest

import (
	"html/template"
	"net/http"
	"net/url"
)

// page is the login page. As with a real provider, the browser leaves the client for this page, and
// returns after the login.
var page = template.Must(template.New("login").Parse(`<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>Log in</title></head><body>
<h1>Log in at the provider</h1>
{{with .Problem}}<p role="alert">{{.}}</p>{{end}}
<form method="post" action="/login/username">
<input type="hidden" name="id" value="{{.ID}}">
<label>Subject <input name="username" autocomplete="off"></label>
<label>Password <input type="password" name="password"></label>
<button type="submit">Log in</button>
</form></body></html>
`))

func (p *Provider) login(w http.ResponseWriter, r *http.Request) {
	ask(w, http.StatusOK, r.FormValue("authRequestID"), "")
}

// authenticate checks the password, and sends the browser back to the client.
func (p *Provider) authenticate(w http.ResponseWriter, r *http.Request) {
	id := r.FormValue("id")
	if err := p.CheckUsernamePassword(r.FormValue("username"), r.FormValue("password"), id); err != nil {
		ask(w, http.StatusForbidden, id, err.Error())
		return
	}
	http.Redirect(w, r, "/authorize/callback?"+url.Values{"id": {id}}.Encode(), http.StatusSeeOther)
}

func ask(w http.ResponseWriter, status int, id, problem string) {
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	_ = page.Execute(w, struct{ ID, Problem string }{id, problem})
}
