package gatehouse

import "strings"

// The lengths of the digits of an id: those of a whole one, and the fewest that
// can stand for it.
const (
	idDigits    = 32
	MinIDDigits = 8
)

// idTypes are the type prefixes of the things that a short id can name. The
// first is meant where the prefix is left out.
var idTypes = map[string][]string{
	"action":    {"act_", "apr_"},
	"push":      {"psh_"},
	"run":       {"run_"},
	"step":      {"stp_"},
	"key":       {"key_"},
	"session":   {"ses_"},
	"principal": {"prn_"},
}

// ShortID reads a short id of a kind of things: the first digits of an id, at
// least MinIDDigits and not all, with its type prefix or without. It returns
// them with the prefix; ok is false for anything else, such as a whole id or a
// name. Principals have names, so theirs needs the prefix. Kinds are action,
// push, run, step, key, session and principal.
func ShortID(kind, id string) (prefix string, ok bool) {
	types := idTypes[kind]
	if len(types) == 0 {
		return "", false
	}
	at, digits := "", id
	for _, t := range types {
		if rest, found := strings.CutPrefix(id, t); found {
			at, digits = t, rest
		}
	}
	if at == "" && kind == "principal" || len(digits) < MinIDDigits || len(digits) >= idDigits || strings.Trim(digits, "0123456789abcdef") != "" {
		return "", false
	}
	if at == "" {
		at = types[0]
	}
	return at + digits, true
}
