package console_test

import (
	"crypto/ecdh"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/gate"
	"github.com/gatehouse-dev/gatehouse/internal/notify/webpushtest"
)

const notificationsPath = "/settings/notifications"

// phones is a channel that sends to devices. No notifier runs in a world.
func phones() gate.ChannelInfo {
	return gate.ChannelInfo{
		Name: "phones", Kind: "webpush", Tenants: []string{gatehouse.DefaultTenant}, Personal: true,
		Endpoint: func(endpoint string) error {
			if strings.HasPrefix(endpoint, "https://10.") {
				return errors.New("is inside")
			}
			return nil
		},
	}
}

// script posts a body as the page's script does, with a phone's name.
func (b *browser) script(path, body string) *page {
	b.w.t.Helper()
	r, err := http.NewRequestWithContext(b.w.t.Context(), http.MethodPost, b.w.server.URL+path, strings.NewReader(body))
	must(b.w.t, err)
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Sec-Fetch-Site", "same-origin")
	r.Header.Set("Accept", "application/json")
	r.Header.Set("User-Agent", "Mozilla/5.0 (Android 16; Mobile; rv:140.0) Gecko/140.0 Firefox/140.0")
	return b.do(r)
}

// serverKey is the public key that the browser needs to subscribe.
func (b *browser) serverKey() []byte {
	b.w.t.Helper()
	var answer struct{ Key string }
	p := b.script(notificationsPath+"/key", "").want(http.StatusOK)
	must(b.w.t, json.Unmarshal([]byte(p.body), &answer))
	key, err := base64.RawURLEncoding.DecodeString(answer.Key)
	must(b.w.t, err)
	if _, err := ecdh.P256().NewPublicKey(key); err != nil || len(key) != gatehouse.P256DHSize {
		b.w.t.Fatalf("the key: %v", err)
	}
	return key
}

// TestDevices: a person adds the browser, sees it, and removes it; nobody else sees it or can remove
// it. Without a script, the page says what needs one.
func TestDevices(t *testing.T) {
	t.Parallel()
	w := newWorldWith(t, phones())
	ana, ben := w.signIn("ana", gatehouse.RoleApprover), w.signIn("ben", gatehouse.RoleViewer)
	service := webpushtest.Start(t)
	ana.get("/settings").want(http.StatusOK).has(`href="` + notificationsPath + `"`)
	ana.get(notificationsPath).want(http.StatusOK).has(testid("notify-device"), "None.", "needs JavaScript", "devices.js")
	key := ana.serverKey()
	if string(ben.serverKey()) != string(key) {
		t.Error("two people of a tenant have different keys")
	}
	phone := service.Subscribe(t, key)
	ana.script(notificationsPath+"/devices", phone.JSON()).want(http.StatusCreated)
	page := ana.get(notificationsPath).want(http.StatusOK)
	page.has("Firefox on Android", "nothing sent yet", strings.TrimPrefix(service.URL, "https://"), testid("test-device"))
	page.lacks(phone.Endpoint)
	ben.get(notificationsPath).want(http.StatusOK).lacks("Firefox on Android")
	devices, err := w.gate.ListDevices(ana.inside())
	if err != nil || len(devices) != 1 {
		t.Fatalf("%v, %v", devices, err)
	}
	id := devices[0].ID
	ben.post(notificationsPath+"/devices/"+id+"/remove", "sure", "yes").want(http.StatusNotFound)
	ben.post(notificationsPath + "/devices/" + id + "/test").want(http.StatusNotFound)
	ana.post(notificationsPath + "/devices/" + id + "/remove").want(http.StatusUnprocessableEntity).has("Tick the box")

	// Whoever signs in to the same browser takes it over.
	ben.script(notificationsPath+"/devices", phone.JSON()).want(http.StatusCreated)
	ana.get(notificationsPath).want(http.StatusOK).lacks("Firefox on Android")
	mine, err := w.gate.ListDevices(ben.inside())
	if err != nil || len(mine) != 1 {
		t.Fatalf("%v, %v", mine, err)
	}
	id = mine[0].ID
	ben.post(notificationsPath+"/devices/"+id+"/remove", "sure", "yes").want(http.StatusOK).lacks("Firefox on Android")

	for i := range gatehouse.MaxDevices + 1 {
		want := http.StatusCreated
		if i == gatehouse.MaxDevices {
			want = http.StatusUnprocessableEntity
		}
		ana.script(notificationsPath+"/devices", service.Subscribe(t, key).JSON()).want(want)
	}
}

// TestDevicesRefuse: a subscription that cannot work, or that names a private address, is refused.
func TestDevicesRefuse(t *testing.T) {
	t.Parallel()
	w := newWorldWith(t, phones())
	ana := w.signIn("ana", gatehouse.RoleApprover)
	b := webpushtest.Start(t).Subscribe(t, ana.serverKey())
	for _, change := range [][2]string{
		{b.Endpoint, strings.Replace(b.Endpoint, "https:", "http:", 1)},
		{b.Endpoint, "https://10.0.0.5/push"},
		{b.Endpoint, "https://user:password@push.example/"},
		{b.Endpoint, "https://push.example/" + strings.Repeat("x", gatehouse.MaxEndpoint)},
		{b.Endpoint, ""},
		{`"p256dh":"B`, `"p256dh":"A`},
		{`"auth":"`, `"auth":"AAAA`},
		{`"auth":"`, `"auth":"!`},
	} {
		body := strings.Replace(b.JSON(), change[0], change[1], 1)
		if body == b.JSON() {
			t.Fatalf("the subscription has no %s", change[0])
		}
		ana.script(notificationsPath+"/devices", body).want(http.StatusUnprocessableEntity)
	}
	ana.script(notificationsPath+"/devices", "{").want(http.StatusBadRequest)
	if list, err := w.gate.ListDevices(ana.inside()); err != nil || len(list) != 0 {
		t.Errorf("%v, %v", list, err)
	}
	w.stranger().script(notificationsPath+"/devices", b.JSON()).want(http.StatusUnauthorized)
}

// TestDevicesOff: without a channel of kind webpush, the page says so and adds nothing.
func TestDevicesOff(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ana := w.signIn("ana", gatehouse.RoleApprover)
	ana.get(notificationsPath).want(http.StatusOK).has(testid("devices-off")).lacks(testid("notify-device"))
	ana.script(notificationsPath+"/key", "").want(gatehouse.StatusOf(gatehouse.CodeUnsupported))
}

// TestAppFiles: the files that make the console an app need no session, and the service worker may
// control all pages.
func TestAppFiles(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	b := w.stranger()
	for path, kind := range map[string]string{
		"/service-worker.js": "text/javascript; charset=utf-8", "/manifest.webmanifest": "application/manifest+json",
		"/icon.png": "image/png",
	} {
		p := b.get(path).want(http.StatusOK)
		p.headers()
		if got := p.header.Get("Content-Type"); got != kind {
			t.Errorf("%s is %s", path, got)
		}
	}
	var manifest struct {
		StartURL string `json:"start_url"`
		Display  string
		Icons    []struct{ Src string }
	}
	must(t, json.Unmarshal([]byte(b.get("/manifest.webmanifest").body), &manifest))
	if got := fmt.Sprint(manifest); got != "{/inbox standalone [{/icon.png}]}" {
		t.Errorf("the manifest: %s", got)
	}
	csp := b.get("/signin").header.Get("Content-Security-Policy")
	for _, part := range []string{"worker-src 'self'", "manifest-src 'self'"} {
		if !strings.Contains(csp, part) {
			t.Errorf("the content policy lacks %s: %s", part, csp)
		}
	}
	b.get("/signin").has(`rel="manifest"`)
}
