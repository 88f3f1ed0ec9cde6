package feed

import (
	"errors"
	"fmt"
	"testing"
)

// TestOutageLogsEachReasonOnce: there are several attempts per second,
// possibly for days.
func TestOutageLogsEachReasonOnce(t *testing.T) {
	t.Parallel()
	var o outage
	told := 0
	count := func(reason string) {
		if o.news(errors.New(reason)) {
			told++
		}
	}
	for range 1000 {
		count("refused")
		count("no such host")
	}
	if told != 2 {
		t.Errorf("two reasons were logged %d times", told)
	}
	o.over()
	if count("refused"); told != 3 {
		t.Error("the next outage is not logged")
	}
	for i := range 1000 {
		count(fmt.Sprint("reason ", i))
	}
	if told > 20 {
		t.Errorf("reasons that are never the same were logged %d times", told)
	}
}
