package workflow

import "maps"

// Keys returns the keys that the parser knows, by where they stand.
func Keys() map[string][]string {
	all := maps.Clone(keys)
	for kind, known := range withKeys {
		all["with of "+string(kind)] = known
	}
	maps.Copy(all, partKeys)
	return all
}
