package term

// Check is one thing looked at. Result is ok, note or fail.
type Check struct {
	Name   string `json:"check"`
	Result string `json:"result"`
	Detail string `json:"detail"`
}

// What a check can come to.
const (
	CheckOK   = "ok"
	CheckNote = "note"
	CheckFail = "fail"
)

// PrintChecks prints what was looked at, and is an Exit when a check failed.
func (g *IO) PrintChecks(checks []Check) (err error) {
	ok := true
	t := &Table{Header: []string{"CHECK", "RESULT", "DETAIL"}, Wide: 2, Paint: func(_ int, cell string) string {
		return map[string]string{CheckOK: Green, CheckNote: Yellow, CheckFail: Red}[cell]
	}}
	for _, one := range checks {
		ok = ok && one.Result != CheckFail
		t.Add(one.Name, one.Result, one.Detail)
	}
	if g.JSON {
		err = g.PrintJSON(map[string]any{"ok": ok, "checks": checks})
	} else {
		err = g.Print(t, "")
	}
	if err == nil && !ok {
		err = Exit(ExitError)
	}
	return err
}
