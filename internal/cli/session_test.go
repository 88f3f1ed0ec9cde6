package cli

import (
	"context"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/servetest"
)

// TestSetupLinkToSession uses the link that dev prints to sign a browser in, and ends the session
// from the command line.
func TestSetupLinkToSession(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := startDev(t, dir)
	defer s.stop()
	link := regexp.MustCompile(`http://\S+/setup\?token=(\S+)`).FindStringSubmatch(s.banner)
	base := strings.TrimSuffix(s.api, "/api/v1")
	jar, err := cookiejar.New(nil)
	must(t, err)
	browser := &http.Client{Jar: jar,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	send := func(r *http.Request, err error) (status, cookies int) {
		t.Helper()
		must(t, err)
		res, err := browser.Do(r)
		must(t, err)
		_ = res.Body.Close()
		return res.StatusCode, len(res.Cookies())
	}
	get := func(path string) (status, cookies int) {
		t.Helper()
		return send(http.NewRequestWithContext(t.Context(), http.MethodGet, path, nil))
	}
	redeem := func() (status, cookies int) {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, base+"/setup",
			strings.NewReader(url.Values{"token": {link[1]}}.Encode()))
		if err == nil {
			r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
			r.Header.Set("Origin", base)
		}
		return send(r, err)
	}
	// A link preview does not use the link up.
	if status, cookies := get(link[0]); status != http.StatusOK || cookies != 0 {
		t.Fatalf("the page: %d, %d cookies", status, cookies)
	}
	if status, _ := get(base + "/inbox"); status == http.StatusOK {
		t.Fatal("the inbox is open")
	}
	if status, cookies := redeem(); status != http.StatusSeeOther || cookies == 0 {
		t.Fatalf("redeemed: %d, %d cookies", status, cookies)
	}
	if status, _ := get(base + "/inbox"); status != http.StatusOK {
		t.Fatalf("the inbox: %d", status)
	}
	if status, _ := redeem(); status != http.StatusUnauthorized {
		t.Errorf("again: %d", status)
	}

	admin := servetest.MustClient(t, base, devEnv(t, dir, "admin"))
	page, err := admin.ListSessions(context.Background(), gatehouse.SessionFilter{})
	if err != nil || len(page.Items) != 1 || page.Items[0].Method != gatehouse.SignInSetup {
		t.Fatalf("sessions: %+v, %v", page.Items, err)
	}
	if _, err := admin.RevokeSession(t.Context(), page.Items[0].ID); err != nil {
		t.Fatal(err)
	}
	if status, _ := get(base + "/inbox"); status == http.StatusOK {
		t.Error("a revoked session reads the inbox")
	}
}
