package console_test

import (
	"net/http"
	"testing"

	"github.com/gatehouse-dev/gatehouse"
)

// TestSecretsPage: an administrator sets, rotates and revokes a secret, whose value no
// page contains, not even after a refusal.
func TestSecretsPage(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	root, ana := w.signIn("rosa", gatehouse.RoleAdmin), w.signIn("ana", gatehouse.RoleApprover)
	const path, value = "/settings/secrets", "s3cr3t-value"
	ana.get(path).want(http.StatusForbidden)
	ana.get("/settings").want(http.StatusOK).lacks(path)
	root.get("/settings").want(http.StatusOK).has(path)

	ana.post(path, "name", "shop-token", "value", value).want(http.StatusForbidden)
	root.post(path, "name", "no name", "value", value).want(http.StatusUnprocessableEntity).
		has("Name: must be").lacks(value)
	root.post(path, "name", "shop-token", "value", "abc").want(http.StatusUnprocessableEntity).
		has("Value: must be", `value="shop-token"`)
	root.post(path, "name", "shop-token", "value", value+"\r\n").want(http.StatusOK).
		has(`data-id="shop-token"`, "by rosa", path+"/shop-token/rotate").lacks(value)
	root.post(path, "name", "shop-token", "value", value).want(http.StatusConflict).lacks(value)
	opened, err := w.gate.OpenSecrets(t.Context(), gatehouse.DefaultTenant)
	if err != nil || len(opened) != 1 || opened[0].Value != value {
		t.Fatalf("%+v, %v", opened, err)
	}
	root.post(path+"/shop-token/rotate", "value", value+"-2").want(http.StatusOK).has("<td>2</td>").lacks(value)
	root.post(path + "/shop-token/revoke").want(http.StatusUnprocessableEntity)
	root.post(path+"/shop-token/revoke", "sure", "yes").want(http.StatusOK).
		has("revoked").lacks(path + "/shop-token/rotate")
	root.post(path+"/gone/revoke", "sure", "yes").want(http.StatusNotFound)
	root.get("/settings/changes").want(http.StatusOK).has("Rotated:", "secret shop-token")
	root.get("/audit").want(http.StatusOK).lacks(value)
}
