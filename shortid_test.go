package gatehouse

import "testing"

func TestShortID(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ kind, id, want string }{
		{"action", "act_01a20778", "act_01a20778"},
		{"action", "01a20778", "act_01a20778"},
		{"action", "apr_01a20778634e", "apr_01a20778634e"},
		{"push", "01a20778634e7", "psh_01a20778634e7"},
		{"principal", "prn_01a20778", "prn_01a20778"},
		{"principal", "01a20778", ""}, // a name
		{"action", "act_01a2077", ""}, // too short
		{"action", "act_01a20778634e7a9d97a8f46f86fe11a2", ""},
		{"action", "psh_01a20778", ""},
		{"action", "act_01A20778", ""},
		{"action", "act_01a2077%", ""},
		{"workflow", "01a20778", ""},
	} {
		got, ok := ShortID(c.kind, c.id)
		if got != c.want || ok != (c.want != "") {
			t.Errorf("%s %s: got %q, %v", c.kind, c.id, got, ok)
		}
	}
}
