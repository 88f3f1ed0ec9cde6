package card

import (
	"fmt"
	"testing"

	"github.com/gatehouse-dev/gatehouse"
)

func TestMoved(t *testing.T) {
	t.Parallel()
	on := func(version, state string) *gatehouse.Action {
		return &gatehouse.Action{Proposal: gatehouse.Proposal{
			Operation: "update", Target: gatehouse.Target{EntityRef: "A", Version: version},
			CurrentState: gatehouse.JSON(state), ProposedChange: `{"price":"12.50"}`,
		}}
	}
	for name, test := range map[string]struct {
		older, newer *gatehouse.Action
		want         string
	}{
		"nothing": {on("7", `{"price":"10.00"}`), on("7", `{"price":"10.00"}`), "[]"},
		"a field": {on("7", `{"price":"10.00","stock":3}`), on("8", `{"price":"11.00","stock":3}`),
			"[target version: 7 > 8 price: 10.00 > 11.00]"},
		"no version": {on("", `{"price":"10.00"}`), on("", `{"price":null}`), "[price: 10.00 > null]"},
		"read since": {on("7", ""), on("8", `{"price":"11.00"}`), "[target version: 7 > 8 price:  > 11.00]"},
		"gone":       {on("", `{"a":1,"b":2}`), on("", `{"b":2}`), "[a: 1 > ]"},
		"row by row": {on("", `{"A":{"p":1,"v":1},"B":{"p":2,"v":1}}`),
			on("", `{"A":{"p":1,"v":1},"B":{"p":3,"v":2}}`), "[B/p: 2 > 3 B/v: 1 > 2]"},
		"exact numerals":  {on("", `{"n":1.0}`), on("", `{"n":1.00}`), "[n: 1.0 > 1.00]"},
		"an array within": {on("", `{"n":[1,2]}`), on("", `{"n":[1,3]}`), "[n/1: 2 > 3]"},
	} {
		var got []string
		for _, c := range Moved(test.older, test.newer) {
			path := ""
			for i, s := range c.Steps {
				if i > 0 {
					path += "/"
				}
				path += s
			}
			got = append(got, fmt.Sprintf("%s: %s > %s", path, c.Before.Text, c.After.Text))
		}
		if s := fmt.Sprint(got); s != test.want {
			t.Errorf("%s: %s, want %s", name, s, test.want)
		}
	}
}
