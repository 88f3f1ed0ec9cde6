package gatehouse

// SearchBlock holds the words of a range of stored actions, of all tenants: a part of
// the index that [ActionFilter.Query] uses. It is derived from the actions.
type SearchBlock struct {
	// Number is the position of the range among all ranges.
	Number int64
	// Actions counts the actions that the words were taken from.
	Actions int64
	// LastID is the id of the last of these actions, "" for none.
	LastID string
	// Tenants has a part for each tenant of the block's actions.
	Tenants []SearchTenant
}

// SearchTenant is one tenant's part of a block.
type SearchTenant struct {
	Tenant string
	// LowID and TopID are the least and the greatest id of its actions.
	LowID, TopID string
	// Words are sorted.
	Words []SearchWord
}

// SearchWord is a word and the actions of a block that have it.
type SearchWord struct {
	// Word is in lower case.
	Word string
	// Rows is encoded by the store.
	Rows []byte
}

// SearchQueueReader reads the actions that the search index lacks.
type SearchQueueReader interface {
	// NextSearchBlock returns the next block of the index; nil until all of the
	// block's actions are stored. A search also finds actions outside the index, but
	// each of them makes it slower.
	NextSearchBlock() (*SearchBlock, error)
}

// SearchQueueWriter writes the search index. PutArchived removes actions from it.
type SearchQueueWriter interface {
	// PutSearchBlock stores the result of NextSearchBlock. It returns ErrConflict if
	// the block is stored already, or an action was removed from it meanwhile.
	PutSearchBlock(b *SearchBlock) error
}
