package cli

import (
	"strings"
	"testing"
)

// TestNoContextInUse: the error says what to do if no context is in use.
func TestNoContextInUse(t *testing.T) {
	t.Parallel()
	_, err := (&contexts{}).find("")
	if err == nil || strings.Contains(err.Error(), `""`) || !strings.Contains(err.Error(), "no context is in use") {
		t.Errorf("said %v", err)
	}
}
