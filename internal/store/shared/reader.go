package shared

// BoundToReader adds a filter's ReadBy to the values to which a cursor is bound. Without ReadBy,
// cursors are the same as before this filter existed.
func BoundToReader(bound []string, readBy string) []string {
	if readBy == "" {
		return bound
	}
	return append(bound, "read by "+readBy)
}
