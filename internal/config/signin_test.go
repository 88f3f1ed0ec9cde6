package config_test

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/config"
)

func TestSignIn(t *testing.T) {
	t.Setenv("OIDC_SECRET", "s3cret")
	c, err := config.Parse("gatehouse.yaml", []byte(`
sign_in:
  public_url: https://gate.example.com/
  oidc:
    - name: acme
      issuer: https://id.example.com
      client_id: gatehouse
      client_secret: ${OIDC_SECRET}
      scopes: [profile, groups]
      groups_claim: groups
      roles: {finance: [approver], ops: [operator, auditor]}
      provision: true
  passkeys: {}
`))
	if err != nil {
		t.Fatal(err)
	}
	want := config.SignIn{
		PublicURL: "https://gate.example.com",
		OIDC: []config.OIDC{{
			Name: "acme", Issuer: "https://id.example.com", ClientID: "gatehouse", ClientSecret: "s3cret",
			Scopes: []string{"profile", "groups"}, GroupsClaim: "groups", Provision: true,
			Roles: map[string][]gatehouse.Role{"finance": {gatehouse.RoleApprover},
				"ops": {gatehouse.RoleOperator, gatehouse.RoleAuditor}},
		}},
		Passkeys: &config.Passkeys{RPID: "gate.example.com", Origins: []string{"https://gate.example.com"}},
	}
	if d := cmp.Diff(want, c.SignIn); d != "" {
		t.Error(d)
	}
}

// TestSecurityPage reads the configuration that the manual shows.
func TestSecurityPage(t *testing.T) {
	t.Setenv("OIDC_SECRET", "s3cret")
	page, err := os.ReadFile("../../docs/security.md")
	if err != nil {
		t.Fatal(err)
	}
	blocks := regexp.MustCompile("(?s)```yaml\n(.*?)```").FindAllSubmatch(page, -1)
	if len(blocks) == 0 {
		t.Fatal("no configuration on the page")
	}
	for _, b := range blocks {
		c, err := config.Parse("gatehouse.yaml", b[1])
		if err != nil || c.SignIn.PublicURL == "" || len(c.SignIn.OIDC) == 0 || c.SignIn.Passkeys == nil {
			t.Errorf("%+v, %v", c, err)
		}
	}
}

func TestSignInRefuses(t *testing.T) {
	t.Parallel()
	const provider = "name: a, issuer: https://i.test, client_id: x"
	for name, tc := range map[string]struct{ src, want string }{
		"unknown key":  {"sign_in: {pubic_url: x}", ":1:11: "},
		"in the clear": {"sign_in: {public_url: 'http://gate.example.com'}", "sign_in.public_url: must be https"},
		"a path": {"sign_in: {public_url: 'https://gate.example.com/x'}",
			"sign_in.public_url: must be scheme and host"},
		"no public_url": {"sign_in: {oidc: [{" + provider + "}]}", "sign_in.public_url: is required"},
		"two of a name": {"sign_in: {public_url: 'https://g.test', oidc: [{" + provider + "}, {" + provider + "}]}",
			"sign_in.oidc[1].name"},
		"an issuer in the clear": {
			"sign_in: {public_url: 'https://g.test', oidc: [{name: a, issuer: 'http://i.test', client_id: x}]}",
			"oidc[0].issuer"},
		"no client": {"sign_in: {public_url: 'https://g.test', oidc: [{name: a, issuer: 'https://i.test'}]}",
			"oidc[0].client_id"},
		"an unknown role": {"sign_in: {public_url: 'https://g.test', oidc: [{" + provider + ", roles: {g: [boss]}}]}",
			"oidc[0].roles"},
		"provision without roles": {"sign_in: {public_url: 'https://g.test', oidc: [{" + provider + ", provision: true}]}",
			"oidc[0].provision"},
		"passkeys of an address": {"sign_in: {public_url: 'http://127.0.0.1:8080', passkeys: {}}",
			"passkeys.rp_id: must be a domain"},
		"passkeys of elsewhere": {"sign_in: {public_url: 'https://g.test', passkeys: {rp_id: h.test}}",
			"passkeys.rp_id: must be the domain"},
		"passkeys of nowhere": {"sign_in: {passkeys: {}}", "passkeys.origins"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := config.Parse("g.yaml", []byte(tc.src))
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("err = %v, want %q in it", err, tc.want)
			}
		})
	}
}
