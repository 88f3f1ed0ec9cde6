package term

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"

	"github.com/go-json-experiment/json"

	"github.com/gatehouse-dev/gatehouse"
)

// MaxBody limits the size of an input file, in bytes. The server has the same limit.
const MaxBody = 1 << 20

// ReadInput reads a file of at most 1 MiB, or stdin for "-".
func ReadInput(g *IO, name string) ([]byte, error) {
	in := g.Stdin
	what := "the input"
	if name != "-" {
		what = name
		f, err := os.Open(name)
		if err != nil {
			return nil, err
		}
		defer f.Close()
		in = f
	}
	b, err := io.ReadAll(io.LimitReader(in, MaxBody+1))
	if err != nil {
		var path *fs.PathError
		if errors.As(err, &path) {
			return nil, err // it names the file
		}
		return nil, fmt.Errorf("read %s: %w", what, err)
	}
	if len(b) > MaxBody {
		return nil, gatehouse.E(gatehouse.CodeBodyTooLarge, "%s is larger than 1 MiB", what)
	}
	return b, nil
}

// DecodeProposal refuses duplicate and unknown keys, as the server does. Keys are case-sensitive.
func DecodeProposal(b []byte) (*gatehouse.Proposal, error) {
	canonical, err := gatehouse.Canonicalize(b)
	if err != nil {
		e := gatehouse.E(gatehouse.CodeMalformed, "the proposal is not valid JSON: %v", err)
		var syntax *gatehouse.SyntaxError
		if errors.As(err, &syntax) {
			e.Violations = gatehouse.Violations{{Pointer: syntax.Pointer, Detail: syntax.Detail}}
		}
		return nil, e
	}
	var p gatehouse.Proposal
	err = json.Unmarshal([]byte(canonical), &p, json.RejectUnknownMembers(true))
	if err == nil {
		return &p, nil
	}
	pointer, detail := "", err.Error()
	if semantic, ok := errors.AsType[*json.SemanticError](err); ok {
		pointer, detail = string(semantic.JSONPointer), "has the wrong type"
		switch {
		case errors.Is(semantic.Err, json.ErrUnknownName):
			detail = "is an unknown field"
		case semantic.Err != nil:
			detail = semantic.Err.Error()
		}
	}
	e := gatehouse.E(gatehouse.CodeMalformed, "the proposal cannot be read: %s",
		strings.TrimPrefix(pointer+" "+detail, " "))
	e.Violations = gatehouse.Violations{{Pointer: pointer, Detail: detail}}
	return nil, e
}
