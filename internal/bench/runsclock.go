package bench

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// clockTime parses [dd-][hh:]mm:ss[.cc], the format of ps.
func clockTime(s string) (time.Duration, error) {
	var days int
	rest := s
	if d, after, ok := strings.Cut(s, "-"); ok {
		n, err := strconv.Atoi(d)
		if err != nil {
			return 0, fmt.Errorf("%q is not a time as ps prints it", s)
		}
		days, rest = n, after
	}
	sum := 0.0
	for part := range strings.SplitSeq(rest, ":") {
		n, err := strconv.ParseFloat(part, 64)
		if err != nil || n < 0 {
			return 0, fmt.Errorf("%q is not a time as ps prints it", s)
		}
		sum = 60*sum + n
	}
	return time.Duration(days)*24*time.Hour + time.Duration(sum*float64(time.Second)), nil
}
