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
	logged := 0
	count := func(reason string) {
		if o.news(errors.New(reason)) {
			logged++
		}
	}
	for range 1000 {
		count("refused")
		count("no such host")
	}
	if logged != 2 {
		t.Errorf("two reasons were logged %d times", logged)
	}
	o.over()
	if count("refused"); logged != 3 {
		t.Error("the next outage is not logged")
	}
	for i := range 1000 {
		count(fmt.Sprint("reason ", i))
	}
	if logged > 20 {
		t.Errorf("1000 different reasons were logged %d times", logged)
	}
}
