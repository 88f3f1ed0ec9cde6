package shared

// BoundToReader adds a filter's ReadBy to what a cursor is bound to. Without
// ReadBy, cursors are the same as before this filter existed.
func BoundToReader(bound []string, readBy string) []string {
	if readBy == "" {
		return bound
	}
	return append(bound, "read by "+readBy)
}
