package cli

import (
	"html"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/servetest"
)

// TestEmptyPagesOfferWorkingCommands runs the commands of the console's empty pages against a server in
// development mode. The inbox of the signed-in person then has the resulting actions.
func TestEmptyPagesOfferWorkingCommands(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	server := startDev(t, dir)
	base := strings.TrimSuffix(server.api, "/api/v1")
	jar, err := cookiejar.New(nil)
	must(t, err)
	browser := &http.Client{Jar: jar}
	_, token, _ := strings.Cut(server.banner, "?token=")
	token, _, _ = strings.Cut(token, " ")
	body := func(method, path string, form url.Values) string {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), method, base+path, strings.NewReader(form.Encode()))
		must(t, err)
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		res, err := browser.Do(req)
		must(t, err)
		defer res.Body.Close()
		b, err := io.ReadAll(res.Body)
		if err != nil || res.StatusCode != http.StatusOK {
			t.Fatalf("%s: %s, %v", res.Request.URL, res.Status, err)
		}
		return string(b)
	}
	body(http.MethodPost, "/setup", url.Values{"token": {token}})
	command := regexp.MustCompile(`data-testid="empty"[\s\S]*?data-copy="([^"]*)"`)
	paste := func(page string) {
		t.Helper()
		found := command.FindStringSubmatch(body(http.MethodGet, page, nil))
		if found == nil {
			t.Fatalf("%s offers no command", page)
		}
		cmd := exec.Command("bash", "-euo", "pipefail", "-c", html.UnescapeString(found[1]))
		cmd.Dir, cmd.Env = dir, cleanEnv()
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%s: %v\n%s", page, err, out)
		}
	}
	for _, page := range []string{"/inbox", "/workflows"} {
		paste(page)
	}
	admin := servetest.MustClient(t, base, devEnv(t, dir, "admin"))
	runs, err := admin.ListRuns(t.Context(), gatehouse.RunFilter{})
	if err != nil || len(runs.Items) != 1 {
		t.Fatalf("%d runs, %v", len(runs.Items), err)
	}
	for end := time.Now().Add(time.Minute); runs.Items[0].Status != gatehouse.RunWaitingApproval; {
		run, err := admin.WaitRun(t.Context(), runs.Items[0].ID, time.Second)
		if err != nil || time.Now().After(end) {
			t.Fatalf("%s, %v", runs.Items[0].Status, err)
		}
		runs.Items[0] = run
	}
	inbox := body(http.MethodGet, "/inbox", nil)
	for _, want := range []string{">SKU-0001<", "Continue "} {
		if !strings.Contains(inbox, want) {
			t.Errorf("the signed-in person's inbox lacks %q", want)
		}
	}
	server.stop()
}
