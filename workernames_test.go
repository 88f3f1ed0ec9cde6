package gatehouse

import "testing"

func TestWorkerNames(t *testing.T) {
	t.Parallel()
	teller := &Principal{ID: "prn_1", Name: "Teller"}
	for _, c := range []struct {
		names     WorkerNames
		valid     bool
		permitted bool
	}{
		{nil, true, true},
		{WorkerNames{"clerk", "teller"}, true, true},
		{WorkerNames{"prn_1"}, true, true},
		{WorkerNames{"clerk"}, true, false},
		{WorkerNames{}, false, false},
		{WorkerNames{"teller", "no name"}, false, true},
	} {
		if err := c.names.Validate(); (err == nil) != c.valid {
			t.Errorf("%q: %v", c.names, err)
		}
		if err := c.names.Permit(teller, "it"); (err == nil) != c.permitted ||
			err != nil && CodeOf(err) != CodeWorkerNotAllowed {
			t.Errorf("%q: %v", c.names, err)
		}
	}
}
