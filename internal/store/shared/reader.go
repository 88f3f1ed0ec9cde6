package shared

// BoundToReader adds a filter's ReadBy to what a cursor is bound to. Without one,
// cursors stay as they were before there was such a filter.
func BoundToReader(bound []string, readBy string) []string {
	if readBy == "" {
		return bound
	}
	return append(bound, "read by "+readBy)
}
