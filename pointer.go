package gatehouse

import "strings"

// JoinPointer returns the JSON pointer (RFC 6901) with the steps, which are names of members
// and indexes; "" for no steps. Append it to another pointer to extend that one.
func JoinPointer(steps ...string) string {
	var b strings.Builder
	for _, s := range steps {
		b.WriteByte('/')
		b.WriteString(strings.ReplaceAll(strings.ReplaceAll(s, "~", "~0"), "/", "~1"))
	}
	return b.String()
}

// SplitPointer returns the steps of a JSON pointer that is not "". The slash at its
// beginning may be missing, and a "~" that begins no escape stays.
func SplitPointer(pointer string) []string {
	steps := strings.Split(strings.TrimPrefix(pointer, "/"), "/")
	for i, s := range steps {
		steps[i] = strings.ReplaceAll(strings.ReplaceAll(s, "~1", "/"), "~0", "~")
	}
	return steps
}
