package signin

import "testing"

func TestLocalPath(t *testing.T) {
	t.Parallel()
	for given, want := range map[string]string{
		"/": "/", "/actions/act_1?tab=mine#x": "/actions/act_1?tab=mine#x", "": "/", "inbox": "/", "//evil.test": "/",
		"/\\evil.test":        "/",
		"/x\r\nSet-Cookie: a": "/", "https://evil.test/": "/", "javascript:alert(1)": "/", "/%zz": "/", "\\\\evil.test": "/",
		"/\t/evil.test": "/",
	} {
		if got := localPath(given); got != want {
			t.Errorf("%q leads to %q, want %q", given, got, want)
		}
	}
}
