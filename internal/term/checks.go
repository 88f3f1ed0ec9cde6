package term

// Check is one check with its result: ok, note or fail.
type Check struct {
	Name   string `json:"check"`
	Result string `json:"result"`
	Detail string `json:"detail"`
}

// The results of a check.
const (
	CheckOK   = "ok"
	CheckNote = "note"
	CheckFail = "fail"
)

// PrintChecks prints the checks, and returns an Exit if one failed.
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
