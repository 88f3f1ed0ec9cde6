package gatehouse

import "strings"

// The number of digits of a full id, and the fewest that a short id can have.
const (
	idDigits    = 32
	MinIDDigits = 8
)

// idTypes maps the kinds of objects that a short id can name to their type prefixes. The first
// prefix is the default when a short id has none.
var idTypes = map[string][]string{
	"action":     {"act_", "apr_"},
	"push":       {"psh_"},
	"run":        {"run_"},
	"step":       {"stp_"},
	"key":        {"key_"},
	"session":    {"ses_"},
	"principal":  {"prn_"},
	"grant":      {"grt_"},
	"mandate":    {"mnd_"},
	"delegation": {"dlg_"},
	"device":     {"dev_"},
	"link_key":   {"rgk_"},
}

// HasShortIDs reports whether objects of a kind can be named by short ids.
func HasShortIDs(kind string) bool { return len(idTypes[kind]) > 0 }

// ShortID reads a short id of an object of a kind: the first digits of an id, at least
// MinIDDigits and not all, with or without the type prefix. It returns the digits with the prefix.
// ok is false for anything else, such as a full id or a name. Principals have names, so their short
// ids need the prefix. Kinds are action, push, run, step, key, session, principal, grant, mandate,
// delegation, device and link_key.
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
	if at == "" && kind == "principal" || len(digits) < MinIDDigits || len(digits) >= idDigits ||
		strings.Trim(digits, "0123456789abcdef") != "" {
		return "", false
	}
	if at == "" {
		at = types[0]
	}
	return at + digits, true
}
