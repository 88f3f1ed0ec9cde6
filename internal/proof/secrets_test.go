package proof

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestSecrets: a secret that is shown once is repeated under its
// Idempotency-Key to the same caller, and is stored nowhere in clear text.
func TestSecrets(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1, "")
	ana := w.admin.create(t, "ana", "person", "approver")
	for i, c := range []struct {
		path string
		body any
	}{
		{"/principals", object{"name": "ina", "kind": "person", "roles": []string{"approver"}}},
		{"/principals/" + ana.id + "/keys", nil},
		{"/principals/" + ana.id + "/edit-token", nil},
	} {
		key := fmt.Sprintf("secret-%d", i)
		first := w.admin.post(c.path, c.body, "Idempotency-Key", key)
		again := w.admin.post(c.path, c.body, "Idempotency-Key", key)
		if first.status != 201 || again.status != 200 || again.header.Get("Idempotency-Replayed") != "true" ||
			string(again.raw) != string(first.raw) {
			t.Errorf("%s: first %s, then %s", c.path, first, again)
		}
		secrets := slices.DeleteFunc([]string{first.str("key"), first.str("edit_token")},
			func(s string) bool { return s == "" })
		if len(secrets) == 0 {
			t.Errorf("%s: the answer has no secret: %s", c.path, first)
		}
		for _, secret := range secrets {
			if w.stored(t, secret) || strings.Contains(w.log.String(), secret) {
				t.Errorf("%s: the secret is in clear text in the data folder or the log", c.path)
			}
		}
	}
	for _, p := range []*person{w.admin, ana, w.agent} {
		if w.stored(t, p.key) || p.edit != "" && w.stored(t, p.edit) {
			t.Errorf("a secret of %s is in clear text in the data folder", p.name)
		}
		if strings.Contains(w.log.String(), p.key) || p.edit != "" && strings.Contains(w.log.String(), p.edit) {
			t.Errorf("a secret of %s is in the log", p.name)
		}
	}
}

// stored looks for a text in the files of the data folder.
func (w *world) stored(t *testing.T, text string) bool {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(w.data, "*"))
	if err != nil || len(files) < 2 {
		t.Fatalf("%d files in the data folder (%v)", len(files), err)
	}
	for _, name := range files {
		content, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(content), text) {
			return true
		}
	}
	return false
}
