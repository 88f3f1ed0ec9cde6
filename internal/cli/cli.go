// Package cli is the command line: the commands that call a server, and those that run one.
package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/alecthomas/kong"

	"github.com/gatehouse-dev/gatehouse/internal/serve"
	"github.com/gatehouse-dev/gatehouse/internal/term"
	"github.com/gatehouse-dev/gatehouse/internal/version"
)

// cli is the command line. The help lists groups and commands in the order of its fields.
type cli struct {
	Globals globals `embed:""`

	Init  serve.InitCommand `cmd:"" group:"serve" help:"Make a data folder and its administrator."`
	Serve serve.Command     `cmd:"" group:"serve" help:"Serve the API and carry out approved changes."`
	Dev   serve.DevCommand  `cmd:"" group:"serve" help:"Serve on this machine without any set-up, for development."`
	Demo  serve.DemoCommand `cmd:"" group:"serve" help:"Play a shop whose prices an agent changes, and check its ledger."`

	Propose  proposeCmd  `cmd:"" group:"act" help:"Propose a change."`
	List     listCmd     `cmd:"" group:"act" help:"List actions."`
	Show     showCmd     `cmd:"" group:"act" help:"Show an action in full."`
	Approve  approveCmd  `cmd:"" group:"act" help:"Approve an action."`
	Reject   rejectCmd   `cmd:"" group:"act" help:"Reject an action."`
	Review   reviewCmd   `cmd:"" group:"act" help:"Review the actions that wait for you, one card at a time."`
	Wait     waitCmd     `cmd:"" group:"act" help:"Wait until an action is decided or finished."`
	Comment  commentCmd  `cmd:"" group:"act" help:"Comment on a pending action, ask its proposer, or answer."`
	Assign   assignCmd   `cmd:"" group:"act" help:"Assign a pending action to a person."`
	Cancel   cancelCmd   `cmd:"" group:"act" help:"Withdraw an action."`
	Undo     undoCmd     `cmd:"" group:"act" help:"Take back a decision before it has an effect."`
	Revise   reviseCmd   `cmd:"" group:"act" help:"Replace a pending action by another."`
	Grant    grantCmd    `cmd:"" group:"act" help:"Approve in advance."`
	Mandate  mandateCmd  `cmd:"" group:"act" help:"Plans of agents, approved in advance."`
	Edit     editCmd     `cmd:"" group:"act" help:"Edit the change of a pending action, as its reviewer."`
	Evaluate evaluateCmd `cmd:"" group:"act" help:"Evaluate a pending action, as a registered evaluator."`
	Rebase   rebaseCmd   `cmd:"" group:"act" help:"Propose the same change on the present state of its target."`
	Reverse  reverseCmd  `cmd:"" group:"act" help:"Propose the opposite of an applied change."`

	MCP  mcpCmd  `cmd:"" name:"mcp" group:"act" help:"MCP, for agents."`
	Hook hookCmd `cmd:"" group:"act" help:"Hooks of coding agents."`

	Run      runCmd      `cmd:"" group:"run" help:"Runs."`
	Workflow workflowCmd `cmd:"" group:"run" help:"Workflows."`

	Push      pushCmd      `cmd:"" group:"operate" help:"Pushes."`
	DLQ       dlqCmd       `cmd:"" name:"dlq" group:"operate" help:"Dead letters."`
	Notify    notifyCmd    `cmd:"" group:"operate" help:"Messages to people."`
	Insights  insightsCmd  `cmd:"" group:"operate" help:"Print how the gate was used, and the results of decisions."`
	Applied   appliedCmd   `cmd:"" group:"operate" help:"List applied changes."`
	Corpus    corpusCmd    `cmd:"" group:"operate" help:"List past decisions with their reasons, to learn from."`
	Evidence  evidenceCmd  `cmd:"" group:"operate" help:"Evidence about an action or a run."`
	Audit     auditCmd     `cmd:"" group:"operate" help:"The audit log."`
	Config    configCmd    `cmd:"" group:"serve" help:"The configuration."`
	Connector connectorCmd `cmd:"" group:"serve" help:"Connectors."`
	Doctor    doctorCmd    `cmd:"" group:"operate" help:"Check server, key, edit token and queues, or a whole store."`
	Backup    backupCmd    `cmd:"" group:"operate" help:"Copy a data folder's store to a file, while it is served."`
	Archive   archiveCmd   `cmd:"" group:"operate" help:"Count the actions that the archiver would move now."`

	MigrateStore migrateStoreCmd `cmd:"" name:"migrate-store" group:"operate" help:"Copy a data folder into a PostgreSQL database."`

	Admin     adminCmd     `cmd:"" group:"administer" help:"For administrators."`
	Policy    policyCmd    `cmd:"" group:"administer" help:"Policies."`
	Evaluator evaluatorCmd `cmd:"" group:"administer" help:"Registered evaluators."`
	Group     groupCmd     `cmd:"" group:"administer" help:"Groups of people whom policies ask."`
	Delegate  delegateCmd  `cmd:"" group:"administer" help:"Let others decide for people who are away."`
	Principal principalCmd `cmd:"" group:"administer" help:"People, agents and services."`
	Key       keyCmd       `cmd:"" group:"administer" help:"API keys."`
	Secret    secretCmd    `cmd:"" group:"administer" help:"Secrets of connectors, in the store."`
	Link      linkCmd      `cmd:"" group:"administer" help:"Keys that sign the links in mails."`
	Session   sessionCmd   `cmd:"" group:"administer" help:"Signed-in browsers."`
	Tenant    tenantCmd    `cmd:"" group:"administer" help:"Tenants."`

	Context    contextCmd         `cmd:"" group:"other" help:"Named servers."`
	Bench      serve.BenchCommand `cmd:"" group:"other" help:"Measure a gate on this machine, beside simple baselines."`
	Version    versionCmd         `cmd:"" group:"other" help:"Print the version."`
	Completion completionCmd      `cmd:"" group:"other" help:"Print a completion script for a shell."`
}

const description = `Agents propose changes. A policy and people decide. Gatehouse makes each approved
change in its target, byte for byte, at most once.

Data goes to stdout: a table on a terminal, tab-separated lines without a header
when piped, the API's JSON with --json. Messages go to stderr. Exit codes: 0 done,
1 error, 2 usage, 4 not authenticated or not allowed, 8 still pending, 10
rejected or denied, 11 expired, 12 superseded or already decided, 13 outcome
unknown.`

// exited is the exit code with which the parser panics after a help text; run recovers it.
type exited int

// newParser makes the parser of the command line c for args. If args begin with the name of a command, the parser
// knows no other command: a parser of all commands takes a third of the time of a short command.
func newParser(c *cli, args []string) (*kong.Kong, error) {
	var grammar any = c
	options := parserOptions(c)
	for field, command := range reflect.ValueOf(c).Elem().Fields() {
		name := cmp.Or(field.Tag.Get("name"), strings.ToLower(field.Name))
		if _, ok := field.Tag.Lookup("cmd"); ok && len(args) > 0 && args[0] == name {
			grammar = &c.Globals
			options = append(options,
				kong.DynamicCommand(name, field.Tag.Get("help"), field.Tag.Get("group"), command.Addr().Interface()))
		}
	}
	return kong.New(grammar, options...)
}

func parserOptions(c *cli) []kong.Option {
	return []kong.Option{
		kong.Name("gatehouse"),
		kong.Description(description),
		kong.Vars{
			"version":   "gatehouse " + version.Number,
			"page_size": strconv.Itoa(pageSize),
			"notified":  ",queued,sent,accepted,delivered,failed,muted",
			"roles":     "What this process does: " + serve.RoleWords(", ") + "; all of it by default.",
		},
		kong.Writers(c.Globals.Stdout, c.Globals.Stderr),
		kong.Exit(func(code int) { panic(exited(code)) }),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true, NoExpandSubcommands: true, WrapUpperBound: 100}),
		kong.ExplicitGroups([]kong.Group{
			{Key: "serve", Title: "Serve"},
			{Key: "act", Title: "Propose and decide"},
			{Key: "run", Title: "Run workflows"},
			{Key: "operate", Title: "Operate and audit"},
			{Key: "administer", Title: "Administer"},
			{Key: "other", Title: "Other"},
			{Key: "global", Title: "Global flags"},
		}),
		kong.PostBuild(nameSubcommands),
		kong.KindMapper(reflect.Int, kong.MapperFunc(wholeNumber)),
		kong.Bind(&c.Globals, &c.Globals.IO),
		kong.BindToProvider((*globals).connect),
	}
}

// nameSubcommands appends the names of a command's subcommands to its help.
func nameSubcommands(k *kong.Kong) error {
	for _, group := range k.Model.Children {
		var names []string
		for _, c := range group.Children {
			if c.Type == kong.CommandNode && !c.Hidden {
				names = append(names, c.Name)
			}
		}
		if len(names) > 0 {
			group.Help = strings.TrimSuffix(group.Help, ".") + ": " + strings.Join(names, ", ") + "."
		}
	}
	return nil
}

// run runs one command line, and returns its exit code.
func run(g globals, args []string) (code int) {
	defer func() {
		if r := recover(); r != nil {
			status, ok := r.(exited)
			if !ok {
				panic(r)
			}
			code = int(status)
		}
	}()
	if len(args) > 0 && args[0] == "help" { // as many other programs have it
		args = append(slices.Clone(args[1:]), "--help")
	}
	c := &cli{Globals: g}
	parser, err := newParser(c, args)
	if err != nil {
		fmt.Fprintf(g.Stderr, "error: %v\n", err)
		return term.ExitError
	}
	parsed, err := parser.Parse(args)
	c.Globals.JSON = c.Globals.AsJSON
	if err != nil {
		return usage(&c.Globals, args, err)
	}
	if err = idGiven(parsed); err == nil {
		err = parsed.Run(&c.Globals)
	}
	if err == nil {
		return term.ExitDone
	}
	c.Globals.report(err)
	return exitCode(err)
}

// idGiven refuses an empty id: a shell passes one for a variable without a value, such as the
// first id of an empty list.
func idGiven(parsed *kong.Context) error {
	for _, p := range parsed.Path {
		if v := p.Positional; v != nil && v.Name == "id" && v.Target.Kind() == reflect.String &&
			v.Target.String() == "" {
			return term.Usagef("the id is empty: did an earlier command return nothing? `gatehouse list` and `gatehouse run " +
				"list` print ids")
		}
	}
	return nil
}

// usage reports an error in the command line, and the correct usage. Without any arguments, it
// prints the whole help.
func usage(g *globals, args []string, err error) int {
	// For an optional enumeration, the parser also lists "", which the message omits.
	words := strings.Replace(err.Error(), `must be one of "",`, "must be one of ", 1)
	var parse *kong.ParseError
	if errors.As(err, &parse) && parse.Context != nil {
		words = unknownCommand(words, parse.Context)
	}
	if slices.Contains(args, "--json") { // g.JSON is not set when parsing fails
		_ = term.WriteJSON(g.Stderr, problem(term.Usagef("%s", words), nil))
		return term.ExitUsage
	}
	if parse != nil && parse.Context != nil {
		ctx := parse.Context
		selected := ctx.Selected()
		switch {
		case len(args) == 0:
			stdout := ctx.Stdout
			ctx.Stdout = g.Stderr
			_ = ctx.PrintUsage(false)
			ctx.Stdout = stdout
		case selected == nil:
			g.Say("Usage: gatehouse <command> [flags]\nSee: gatehouse --help")
		default:
			g.Say("Usage: gatehouse %s\nSee: gatehouse %s --help", strings.TrimSpace(selected.Summary()),
				strings.TrimSpace(selected.Path()))
		}
	}
	g.Say("%s %s", term.Paint(g.ColorErr, term.Red, "error:"), term.Safe(words))
	return term.ExitUsage
}

// unknownCommand replaces the parser's "unexpected argument" by "unknown command" where a command
// is expected, and lists the subcommands where a subcommand is expected.
func unknownCommand(words string, ctx *kong.Context) string {
	word, ok := strings.CutPrefix(words, "unexpected argument ")
	group := ctx.Selected()
	if !ok || group != nil && group.Leaf() {
		return words
	}
	words = "unknown command " + word
	if group == nil || strings.Contains(word, ", did you mean ") {
		return words
	}
	var names []string
	for _, command := range group.Children {
		if !command.Hidden {
			names = append(names, command.Name)
		}
	}
	return words + "; there are " + strings.Join(names, ", ")
}

// wholeNumber reads a number from the command line.
func wholeNumber(ctx *kong.DecodeContext, target reflect.Value) error {
	var text string
	if err := ctx.Scan.PopValueInto("number", &text); err != nil {
		return err
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return fmt.Errorf("%q is not a whole number", text)
	}
	target.SetInt(n)
	return nil
}

// Main runs the command line of this process, and returns its exit code.
func Main() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	// Only the first signal is caught, so that a second one ends the process.
	context.AfterFunc(ctx, stop)
	return run(globals{IO: term.New(ctx, os.Stdin, os.Stdout, os.Stderr)}, os.Args[1:])
}
