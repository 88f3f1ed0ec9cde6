package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// peerMain is an MCP server made with the official SDK, in its own process. Its folder controls its
// behavior: "described" is the description of the tool append, and while there is a file "stall", a
// call of append waits after it has written. After the text "die" it ends without an answer.
func peerMain() {
	if err := newPeer(os.Args[1]).Run(context.Background(), &mcp.StdioTransport{}); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func newPeer(dir string) *mcp.Server {
	s := mcp.NewServer(&mcp.Implementation{Name: "peer", Version: "1"},
		&mcp.ServerOptions{Instructions: "Append lines."})
	type line struct {
		Text string `json:"text"`
	}
	write := func(ctx context.Context, _ *mcp.CallToolRequest, in line) (*mcp.CallToolResult, any, error) {
		if in.Text == "fail" {
			return nil, nil, errors.New("the disk is full")
		}
		f, err := os.OpenFile(filepath.Join(dir, "lines"), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
		if err != nil {
			return nil, nil, err
		}
		_, err = fmt.Fprintln(f, in.Text)
		if err := errors.Join(err, f.Close()); err != nil {
			return nil, nil, err
		}
		if in.Text == "die" {
			os.Exit(1)
		}
		for stalled(dir) && ctx.Err() == nil {
			time.Sleep(10 * time.Millisecond)
		}
		content := []mcp.Content{&mcp.TextContent{Text: "wrote " + in.Text}}
		if in.Text == "much" {
			content = []mcp.Content{&mcp.TextContent{Text: strings.Repeat("x", 1<<20)}}
		}
		return &mcp.CallToolResult{Content: content}, nil, nil
	}
	description := "Appends a line."
	if b, err := os.ReadFile(filepath.Join(dir, "described")); err == nil {
		description = string(b)
	}
	mcp.AddTool(s, &mcp.Tool{Name: "append", Description: description}, write)
	mcp.AddTool(s, &mcp.Tool{Name: "note", Description: "Appends a note."}, write)
	reads := &mcp.ToolAnnotations{ReadOnlyHint: true}
	mcp.AddTool(s, &mcp.Tool{Name: "count", Description: "Counts the lines.", Annotations: reads},
		func(context.Context, *mcp.CallToolRequest, struct{}) (*mcp.CallToolResult, any, error) {
			n := len(peerLines(dir))
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: fmt.Sprint(n)}}}, nil, nil
		})
	// The default policy allows the action types note and tag.
	mcp.AddTool(s, &mcp.Tool{Name: "tag", Description: "Lists the variables of the environment."},
		func(context.Context, *mcp.CallToolRequest, struct{}) (*mcp.CallToolResult, any, error) {
			all := &mcp.TextContent{Text: strings.Join(os.Environ(), "\n")}
			return &mcp.CallToolResult{Content: []mcp.Content{all}}, nil, nil
		})
	return s
}

func stalled(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, "stall"))
	return !errors.Is(err, fs.ErrNotExist)
}

// peerLines is what the peer has written.
func peerLines(dir string) []string {
	b, err := os.ReadFile(filepath.Join(dir, "lines"))
	if err != nil {
		return nil
	}
	return strings.Split(strings.TrimSuffix(string(b), "\n"), "\n")
}
