package hook_test

import (
	"errors"
	"testing"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/hook"
)

func TestVerifier(t *testing.T) {
	t.Parallel()
	v := hook.NewVerifier(func(name string) (string, error) {
		if name != "gh" {
			return "", errors.New("secrets: there is none")
		}
		return "s3cret", nil
	})
	body := []byte(`{"action": "opened"}`)
	h := sign(hook.KindGitHub, "s3cret", "d-1", body)
	delivery, input, err := v.Verify(hook.KindGitHub, "gh", h, body, now)
	if err != nil || delivery != "d-1" ||
		input != `{"body":{"action":"opened"},"delivery":"d-1","event":"push","headers":{"x-github-delivery":"d-1",`+
			`"x-github-event":"push"}}` {
		t.Errorf("%s, %s, %v", delivery, input, err)
	}
	for name, tc := range map[string]struct {
		secret, body string
		code         gatehouse.Code
	}{
		"another body":   {"gh", `{}`, gatehouse.CodeBadSignature},
		"no such secret": {"sn", string(body), gatehouse.CodeInternal},
	} {
		if delivery, input, err := v.Verify(hook.KindGitHub, tc.secret, h, []byte(tc.body),
			now); gatehouse.CodeOf(err) != tc.code || delivery != "" || input != "" {
			t.Errorf("%s: %s, %s, %v", name, delivery, input, err)
		}
	}
	// Signed, but not JSON.
	if _, _, err := v.Verify(hook.KindGitHub, "gh", sign(hook.KindGitHub, "s3cret", "d-1", []byte("x")), []byte("x"),
		now); gatehouse.CodeOf(err) != gatehouse.CodeMalformed {
		t.Error(err)
	}
}
