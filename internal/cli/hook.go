package cli

import (
	"errors"
	"fmt"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/mcp"
	"github.com/gatehouse-dev/gatehouse/internal/term"
)

// hookCmd groups the hooks of coding agents.
type hookCmd struct {
	ClaudeCode hookClaudeCmd `cmd:"" name:"claude-code" help:"Claude Code's hook PreToolUse."`
	Codex      hookCodexCmd  `cmd:"" name:"codex" help:"Codex's hook PermissionRequest."`
}

// hookFlags are the flags of every hook.
type hookFlags struct {
	mcpStateFlags
	Hold gatehouse.Duration `default:"45s" help:"How long to wait for people."`
}

// exitBlock is the exit code by which a hook stops a call, whatever its output.
const exitBlock = 2

// ask answers the agent. Any error stops the call.
func (f *hookFlags) ask(g *globals, agent string, form func(*mcp.HookAnswer) ([]byte, error)) error {
	answer, err := f.answer(g, agent)
	if err != nil {
		answer = &mcp.HookAnswer{Reason: "The call does not run: " + term.ErrorText(err)}
	}
	out, failed := form(answer)
	if failed == nil {
		_, failed = fmt.Fprintln(g.Stdout, string(out))
	}
	if err := errors.Join(err, failed); err != nil {
		g.report(err)
		return term.Exit(exitBlock)
	}
	return nil
}

func (f *hookFlags) answer(g *globals, agent string) (*mcp.HookAnswer, error) {
	call, err := mcp.ReadHookCall(g.Stdin)
	if err != nil {
		return nil, err
	}
	api, err := g.agent()
	if err != nil {
		return nil, err
	}
	folder, err := f.folder(g.URL, agent)
	if err != nil {
		return nil, err
	}
	hook := mcp.Hook{Agent: agent, Gate: api, Folder: folder, Hold: f.Hold.D(), OwnInput: agent == "codex"}
	return hook.Ask(g.Ctx, call)
}

type hookClaudeCmd struct{ hookFlags }

func (*hookClaudeCmd) Help() string {
	return `
Reads a tool call on stdin, proposes it under the connector mcp:claude-code, waits
for the answer, and prints whether Claude Code may run it: once, with exactly the input
that was approved. A call that nobody decided in time is denied for now; the same
call gets the answer later. An error exits 2, which stops the call.

Put this into .claude/settings.json. Without "onFailure": "block", Claude Code runs a
call whose hook crashes or takes too long:

    {"hooks": {"PreToolUse": [{"matcher": "Bash|Write|Edit", "hooks": [
      {"type": "command", "command": "gatehouse hook claude-code", "timeout": 120, "onFailure": "block"}]}]}}

Examples:

    gatehouse hook claude-code --hold 90s
`
}

func (c *hookClaudeCmd) Run(g *globals) error {
	return c.ask(g, "claude-code", (*mcp.HookAnswer).ClaudeCode)
}

type hookCodexCmd struct{ hookFlags }

func (*hookCodexCmd) Help() string {
	return `
Reads a request for permission on stdin, proposes it under the connector mcp:codex,
waits for the answer, and prints it. When nothing valid is printed, Codex asks its user.

Examples:

    gatehouse hook codex --hold 90s
`
}

func (c *hookCodexCmd) Run(g *globals) error { return c.ask(g, "codex", (*mcp.HookAnswer).Codex) }
