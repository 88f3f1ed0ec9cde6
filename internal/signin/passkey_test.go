package signin_test

import (
	"bytes"
	"context"
	"strings"
	"testing"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/signin"
)

func (w *world) passkeys() *signin.Service {
	return w.service(signin.Config{Passkeys: &signin.Passkeys{RPID: "gate.test", Origins: []string{publicURL}}})
}

// register adds a passkey for the person who is signed in.
func (w *world) register(s *signin.Service, browser context.Context, a *authenticator) *gatehouse.Passkey {
	w.Helper()
	c, err := s.BeginPasskeyRegistration(browser, "laptop", "")
	w.must(err)
	k, err := s.FinishPasskeyRegistration(browser, c.State, a.create(c))
	w.must(err)
	return k
}

func TestPasskeySignIn(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := w.passkeys()
	if o := s.Options(); !o.Passkeys || len(o.Providers) != 0 {
		t.Errorf("options %+v", o)
	}
	ana, a := w.person("ana"), newAuthenticator(t)
	k := w.register(s, ana, a)
	if k.Name != "laptop" || k.PrincipalID != who(ana).ID {
		t.Errorf("%+v", k)
	}
	for range 2 {
		c, err := s.BeginPasskeySignIn(t.Context())
		w.must(err)
		if o := a.read(c); len(o.AllowCredentials) != 0 || o.RPID != "gate.test" {
			t.Errorf("asked %s", c.Options)
		}
		answer := a.get(c)
		in, err := s.FinishPasskeySignIn(t.Context(), c.State, answer, gatehouse.Browser{})
		w.must(err)
		if in.Principal.Name != "ana" || in.Session.Method != gatehouse.SignInPasskey || in.Session.Credential != k.ID {
			t.Errorf("signed in %+v", in.Session)
		}
		_, err = s.FinishPasskeySignIn(t.Context(), c.State, answer, gatehouse.Browser{})
		w.want(err, gatehouse.CodeUnauthenticated) // once
	}
	c, err := s.BeginPasskeyRegistration(ana, "again", "")
	w.must(err)
	if o := a.read(c); len(o.ExcludeCredentials) != 1 || o.ExcludeCredentials[0].ID != b64(a.id) {
		t.Errorf("known passkeys are not excluded: %s", c.Options)
	}
	_, err = s.FinishPasskeyRegistration(ana, c.State, a.create(c))
	w.want(err, gatehouse.CodeAlreadyExists)
}

func TestPasskeySignInRefuses(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		why   string
		spoil func(a *authenticator)
	}{
		"no user verification": {"is not valid", func(a *authenticator) { a.flags = userPresent }},
		"another origin":       {"is not valid", func(a *authenticator) { a.origin = "https://gate.test.evil.test" }},
		"another challenge": {"is not valid",
			func(a *authenticator) { a.challenge = b64(bytes.Repeat([]byte{1}, 32)) }},
		"another key":            {"is not valid", func(a *authenticator) { a.key = newAuthenticator(a.t).key }},
		"an unknown credential":  {"is not valid", func(a *authenticator) { a.id = []byte("unknown") }},
		"somebody else's handle": {"is not valid", func(a *authenticator) { a.user = bytes.Repeat([]byte{1}, 32) }},
		"a counter that is back": {"went back", func(a *authenticator) { a.count -= 2 }},
		"a counter that stands":  {"went back", func(a *authenticator) { a.count-- }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, a := newWorld(t), newAuthenticator(t)
			a.count = 10
			s := w.passkeys()
			w.register(s, w.person("ana"), a)
			tc.spoil(a)
			c, err := s.BeginPasskeySignIn(t.Context())
			w.must(err)
			_, err = s.FinishPasskeySignIn(t.Context(), c.State, a.get(c), gatehouse.Browser{})
			w.refused(err, tc.why)
		})
	}
	w := newWorld(t)
	s := w.passkeys()
	for _, garbage := range []string{"", "{}", "null", `{"id":1}`, strings.Repeat("x", 70_000)} {
		c, err := s.BeginPasskeySignIn(t.Context())
		w.must(err)
		_, err = s.FinishPasskeySignIn(t.Context(), c.State, []byte(garbage), gatehouse.Browser{})
		w.want(err, gatehouse.CodeUnauthenticated)
	}
}

func TestPasskeyWithoutACounter(t *testing.T) {
	t.Parallel()
	w, a := newWorld(t), newAuthenticator(t)
	a.counts = false
	s := w.passkeys()
	w.register(s, w.person("ana"), a)
	for range 2 {
		c, err := s.BeginPasskeySignIn(t.Context())
		w.must(err)
		_, err = s.FinishPasskeySignIn(t.Context(), c.State, a.get(c), gatehouse.Browser{})
		w.must(err)
	}
}

func TestPasskeyRegistrationRefuses(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := w.passkeys()
	ana, ben := w.person("ana"), w.person("ben")
	_, err := s.BeginPasskeyRegistration(w.admin, "key", "") // a key is not a session
	w.want(err, gatehouse.CodeUnauthenticated)
	_, err = s.BeginPasskeyRegistration(ana, strings.Repeat("x", 101), "")
	w.want(err, gatehouse.CodeInvalid)
	finish := func(browser context.Context, change func(*authenticator)) error {
		t.Helper()
		c, err := s.BeginPasskeyRegistration(ana, "", "")
		w.must(err)
		a := newAuthenticator(t)
		change(a)
		_, err = s.FinishPasskeyRegistration(browser, c.State, a.create(c))
		return err
	}
	w.refused(finish(ben, func(*authenticator) {}), "another session")
	w.refused(finish(t.Context(), func(*authenticator) {}), "another session")
	w.refused(finish(ana, func(a *authenticator) { a.flags = userPresent }), "is not valid")
	w.refused(finish(ana, func(a *authenticator) { a.origin = "http://gate.test" }), "is not valid")
	// A sign-in's ceremony registers nothing.
	c, err := s.BeginPasskeySignIn(t.Context())
	w.must(err)
	a := newAuthenticator(t)
	a.user = []byte("x")
	_, err = s.FinishPasskeyRegistration(ana, c.State, a.get(c))
	w.refused(err, "the ceremony has another purpose")
	// An old session cannot add a passkey without the edit token.
	w.advance(gatehouse.FreshSignIn)
	_, err = s.BeginPasskeyRegistration(ana, "key", "")
	w.want(err, gatehouse.CodeStepUpRequired)
	_, err = s.BeginPasskeyRegistration(ana, "key", "gte_wrong")
	w.want(err, gatehouse.CodeEditTokenRequired)
	token, err := w.gate.RotateEditToken(w.admin, "ana")
	w.must(err)
	_, err = s.BeginPasskeyRegistration(ana, "key", token.EditToken)
	w.must(err)
	keys, err := w.gate.ListPasskeys(ana, "")
	if err != nil || len(keys) != 0 {
		t.Errorf("%d passkeys, %v", len(keys), err)
	}
	none := w.service(signin.Config{})
	_, err = none.BeginPasskeySignIn(t.Context())
	w.want(err, gatehouse.CodeNotFound)
}

func TestRemovedPasskeyEndsItsSessions(t *testing.T) {
	t.Parallel()
	w, a := newWorld(t), newAuthenticator(t)
	s := w.passkeys()
	ana, ben := w.person("ana"), w.person("ben")
	k := w.register(s, ana, a)
	signIn := func() (*gatehouse.SignedIn, error) {
		c, err := s.BeginPasskeySignIn(t.Context())
		w.must(err)
		return s.FinishPasskeySignIn(t.Context(), c.State, a.get(c), gatehouse.Browser{})
	}
	in, err := signIn()
	w.must(err)
	w.want(w.gate.RemovePasskey(ben, k.ID), gatehouse.CodeRoleRequired)
	w.must(w.gate.RemovePasskey(ana, k.ID))
	_, err = w.gate.FindSession(t.Context(), in.Token)
	w.want(err, gatehouse.CodeUnauthenticated)
	_, err = signIn()
	w.want(err, gatehouse.CodeUnauthenticated)
	w.want(w.gate.RemovePasskey(ana, k.ID), gatehouse.CodeNotFound)
	if _, err := w.gate.WhoAmI(ana); err != nil {
		t.Error("the session of the set-up link ended too")
	}
}

func TestPasskeyStepUp(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := w.passkeys()
	ana, ben := w.person("ana"), w.person("ben")
	key, bens := newAuthenticator(t), newAuthenticator(t)
	x, y := w.high("SKU-A"), w.high("SKU-B")
	_, err := s.BeginPasskeyStepUp(ana, x.ID, x.Digest)
	w.want(err, gatehouse.CodeNotFound) // no passkey yet
	w.register(s, ana, key)
	w.register(s, ben, bens)
	begin := func(browser context.Context, a *gatehouse.Action, digest gatehouse.Digest) *gatehouse.Challenge {
		t.Helper()
		c, err := s.BeginPasskeyStepUp(browser, a.ID, digest)
		w.must(err)
		return c
	}
	first, second := begin(ana, x, x.Digest), begin(ana, x, x.Digest)
	if key.read(first).Challenge == key.read(second).Challenge {
		t.Error("the challenge is the same twice")
	}

	// The signature over one action's challenge does not open another's.
	forX := begin(ana, x, x.Digest)
	forY := begin(ana, y, y.Digest)
	_, err = s.FinishPasskeyStepUp(ana, forX.State, key.get(forY))
	w.refused(err, "is not valid")
	// Nor does a sign-in's.
	in, err := s.BeginPasskeySignIn(t.Context())
	w.must(err)
	_, err = s.FinishPasskeyStepUp(ana, in.State, key.get(in))
	w.refused(err, "the ceremony has another purpose")
	// Nor another person's passkey, nor one that did not verify the person.
	c := begin(ana, x, x.Digest)
	_, err = s.FinishPasskeyStepUp(ana, c.State, bens.get(c))
	w.refused(err, "is not valid")
	c = begin(ana, x, x.Digest)
	_, err = s.FinishPasskeyStepUp(ben, c.State, key.get(c))
	w.refused(err, "another session")
	c = begin(ana, x, x.Digest)
	_, err = s.FinishPasskeyStepUp(w.setup("ana"), c.State, key.get(c)) // her other browser
	w.refused(err, "another session")
	key.flags = userPresent
	c = begin(ana, x, x.Digest)
	_, err = s.FinishPasskeyStepUp(ana, c.State, key.get(c))
	w.refused(err, "is not valid")
	key.flags |= userVerified
	// Nor an assertion for other bytes.
	c = begin(ana, x, y.Digest)
	_, err = s.FinishPasskeyStepUp(ana, c.State, key.get(c))
	w.want(err, gatehouse.CodeDigestMismatch)
	w.want(w.approve(ana, x), gatehouse.CodeStepUpRequired)

	c = begin(ana, x, x.Digest)
	answer := key.get(c)
	u, err := s.FinishPasskeyStepUp(ana, c.State, answer)
	w.must(err)
	if u.Method != gatehouse.StepUpPasskey || u.ActionID != x.ID || u.Digest != x.Digest {
		t.Errorf("%+v", u)
	}
	_, err = s.FinishPasskeyStepUp(ana, c.State, answer)
	w.want(err, gatehouse.CodeUnauthenticated)
	w.want(w.approve(ana, y), gatehouse.CodeStepUpRequired)
	w.must(w.approve(ana, x))
	_, err = w.gate.FindStepUp(ana, x.ID, x.Digest)
	w.want(err, gatehouse.CodeNotFound)
}
