package cli

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/config"
	"github.com/gatehouse-dev/gatehouse/internal/openapi"
	"github.com/gatehouse-dev/gatehouse/internal/term"
)

type connectorImportCmd struct {
	Document  string   `arg:"" help:"The OpenAPI document, YAML or JSON, 3.0 to 3.2."`
	To        string   `help:"The file to write the operations to." placeholder:"FILE"`
	Propose   string   `help:"The connector in the store for which they are proposed." placeholder:"NAME"`
	BaseURL   string   `name:"base-url" help:"The address of a connector that is new in the store." placeholder:"URL"`
	Rationale string   `help:"Why, for those who approve it." placeholder:"TEXT"`
	Only      []string `help:"Operations to take, by name or pattern such as create*; by default those of the last import, else all." placeholder:"NAME"`
	Accept    []string `help:"Operations to accept in their present form, by name or pattern." placeholder:"NAME"`
	AcceptAll bool     `help:"Accept all operations in their present form."`
	Check     bool     `help:"Write nothing, and exit 1 if the document differs from what was accepted."`
}

func (*connectorImportCmd) Help() string {
	return `
Derives an operation of an http connector from each writing operation of the
document, with the JSON Schema of its input, a class and a level, and writes all to
a file. The configuration names that file as import: file:FILE; addresses and
credentials are the configuration's, never the document's.

Nothing in the file can be proposed before a person has accepted it: read it, then
name the operations with --accept. Import again when the document has changed.
Operations that differ from their accepted form are disabled until they are accepted
again.

--propose does the same for an http connector in the store. The new operations are an
action of L4 that somebody else approves, and the command exits 8. Address and
credentials of a stored connector stay as they are.

Piped, the columns are: operation, state (accepted, new, changed, gone, left_out),
class, level, request, and the reasons: the differences from the accepted form, or
the reasons for class and level.

Examples:

    gatehouse connector import openapi.yaml --to crm.openapi.yaml
    gatehouse connector import openapi.yaml --to crm.openapi.yaml --accept 'create*'
    gatehouse connector import openapi.yaml --to crm.openapi.yaml --check
    gatehouse connector import openapi.yaml --propose crm --base-url https://crm.example
    gatehouse connector import openapi.yaml --propose crm --accept 'create*'
`
}

// Validate is called by the parser.
func (c *connectorImportCmd) Validate() error {
	switch {
	case (c.To == "") == (c.Propose == ""):
		return errors.New("give --to or --propose")
	case c.Propose == "" && (c.BaseURL != "" || c.Rationale != ""):
		return errors.New("--base-url and --rationale belong to --propose")
	case c.Propose != "" && !gatehouse.ValidName(c.Propose):
		return errors.New("--propose cannot name a connector: " + gatehouse.NameRule)
	}
	return nil
}

// importedOperation is a line of connector import.
type importedOperation struct {
	Operation string        `json:"operation"`
	State     openapi.State `json:"state"`
	// Moved is true if this import changed the state.
	Moved    bool     `json:"moved"`
	Class    string   `json:"class,omitempty"`
	Level    int      `json:"level,omitempty"`
	Request  string   `json:"request,omitempty"`
	Why      []string `json:"why"`
	Differs  []string `json:"differs"`
	Money    []string `json:"money"`
	Currency string   `json:"currency,omitempty"`
}

func (c *connectorImportCmd) Run(g *globals) error {
	src, err := readBounded(c.Document, openapi.MaxBytes)
	if err != nil {
		return err
	}
	api, err := openapi.Derive(g.Ctx, src)
	if err != nil {
		return fmt.Errorf("%s: the document %w", c.Document, err)
	}
	into := importInto(&importedFile{c})
	if c.Propose != "" {
		into = &storedImport{connectorImportCmd: c}
	}
	before, err := into.before(g)
	if err != nil {
		return err
	}
	file, err := openapi.Open(before)
	if err != nil {
		return config.Locate(cmp.Or(c.To, "connector "+c.Propose), err)
	}
	if err := c.checkNames(api); err != nil {
		return err
	}
	lines, err := file.Import(api, c.Only, func(name string) bool { return c.AcceptAll || matches(c.Accept, name) })
	if err != nil {
		return term.Usagef("--only: %v", err)
	}
	if !c.Check {
		if err := into.write(g, file); err != nil {
			return err
		}
	}
	if err := c.printOperations(g, lines, into.action()); err != nil || c.Check {
		return err
	}
	return into.report(g, unaccepted(lines))
}

// importInto is what an import changes: a file, or a connector in the store.
type importInto interface {
	// before returns the operations of the last import.
	before(g *globals) ([]byte, error)
	write(g *globals, f *openapi.File) error
	// action returns the proposed action; nil for none.
	action() *gatehouse.Action
	// report says what was done, and returns the exit code as an error, nil for 0. waiting counts the operations that
	// wait to be accepted.
	report(g *globals, waiting int) error
}

// importedFile is the file of --to.
type importedFile struct{ *connectorImportCmd }

func (f *importedFile) before(*globals) ([]byte, error) {
	text, err := os.ReadFile(f.To)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return text, err
}

func (f *importedFile) write(_ *globals, file *openapi.File) error {
	text, err := file.Text()
	if err != nil {
		return err
	}
	return replaceFile(f.To, text)
}

func (*importedFile) action() *gatehouse.Action { return nil }

func (f *importedFile) report(g *globals, waiting int) error {
	if waiting == 0 {
		g.Say("Wrote %s.", f.To)
		return nil
	}
	g.Say("Wrote %s. Operations that wait to be accepted: %d. Read them there, then import again with "+
		"--accept NAME or --accept-all.", f.To, waiting)
	return nil
}

// unaccepted counts the operations that wait to be accepted.
func unaccepted(lines []openapi.Line) (n int) {
	for _, l := range lines {
		if l.State == openapi.New || l.State == openapi.Changed {
			n++
		}
	}
	return n
}

// checkNames refuses a name or pattern that matches no operation that can be imported.
func (c *connectorImportCmd) checkNames(api *openapi.API) error {
	for _, p := range slices.Concat(c.Accept, c.Only) {
		found := false
		for name := range api.Operations {
			found = found || matches([]string{p}, name)
		}
		if why, ok := api.LeftOut[p]; ok {
			return term.Usagef("%s cannot be imported: %s", gatehouse.Quote(p), why)
		}
		if !found {
			return term.Usagef("the document has no operation %s that can be imported", gatehouse.Quote(p))
		}
	}
	return nil
}

func matches(patterns []string, name string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool { ok, err := path.Match(p, name); return ok && err == nil })
}

func (c *connectorImportCmd) printOperations(g *globals, lines []openapi.Line, proposed *gatehouse.Action) error {
	all := []importedOperation{}
	t := &term.Table{Header: []string{"OPERATION", "STATE", "CLASS", "LEVEL", "REQUEST", "WHY"}, Wide: 5}
	updated := false
	for _, l := range lines {
		updated = updated || l.Updated
		level := ""
		if l.Floor > 0 {
			level = l.Floor.String()
		}
		why := l.Why
		if len(l.Differs) > 0 {
			why = l.Differs
		}
		t.Add(l.Name, string(l.State), l.Class, level, strings.TrimSpace(l.Request), strings.Join(why, "; "))
		all = append(all, importedOperation{
			Operation: l.Name, State: l.State, Moved: l.Updated, Class: l.Class, Level: int(l.Floor),
			Request: strings.TrimSpace(l.Request),
			Why:     orEmpty(l.Why), Differs: orEmpty(l.Differs), Money: orEmpty(l.Money), Currency: l.Currency,
		})
	}
	var err error
	if g.JSON {
		out := map[string]any{"operations": all}
		if proposed != nil {
			out["action"] = proposed
		}
		err = g.PrintJSON(out)
	} else {
		err = g.Print(t, "No operation of the document matches.")
	}
	if err != nil {
		return err
	}
	if !g.JSON {
		c.printAmounts(g, lines)
	}
	if c.Check && (unaccepted(lines) > 0 || updated) {
		g.Say("%s differs from what was accepted.", c.Document)
		return term.Exit(1)
	}
	return nil
}

// printAmounts lists the amounts that a policy's ceilings can count.
func (c *connectorImportCmd) printAmounts(g *globals, lines []openapi.Line) {
	said := false
	for _, l := range lines {
		if len(l.Money) == 0 || l.State == openapi.Gone {
			continue
		}
		if !said {
			g.Say("Amounts that a ceiling of the policy can count:")
			said = true
		}
		for _, m := range l.Money {
			expression := "change" + strings.ReplaceAll(m, "/", ".")
			if l.Currency != "" {
				expression += ", in " + "change" + strings.ReplaceAll(l.Currency, "/", ".")
			}
			g.Say("  %s: amount: %s", term.Safe(l.Name), term.Safe(expression))
		}
	}
}

func orEmpty(list []string) []string {
	if list == nil {
		return []string{}
	}
	return list
}

// readBounded reads a file, but at most one byte beyond a limit.
func readBounded(name string, most int64) ([]byte, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, most+1))
}

// replaceFile writes a file completely, or not at all. A file that exists keeps its mode; a symbolic link stays.
func replaceFile(name string, text []byte) error {
	mode := fs.FileMode(0o644)
	if info, err := os.Stat(name); err == nil {
		mode = info.Mode().Perm()
		if name, err = filepath.EvalSymlinks(name); err != nil {
			return err
		}
	} else if _, notLink := os.Readlink(name); notLink == nil {
		return fmt.Errorf("%s is a symbolic link to a file that cannot be read: %w", term.ShownPath(name), err)
	}
	return writeWhole(name, text, mode)
}

// writeWhole writes a file with the given mode, completely or not at all.
func writeWhole(name string, text []byte, mode fs.FileMode) error {
	temp, err := os.CreateTemp(filepath.Dir(name), ".gatehouse-*")
	if err != nil {
		return err
	}
	defer os.Remove(temp.Name())
	_, err = temp.Write(text)
	if err == nil {
		err = temp.Chmod(mode)
	}
	err = errors.Join(err, temp.Sync(), temp.Close())
	if err != nil {
		return err
	}
	return os.Rename(temp.Name(), name)
}
