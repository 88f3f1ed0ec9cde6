package workflow

import "maps"

// Keys returns the keys that the parser accepts, by place.
func Keys() map[string][]string {
	all := maps.Clone(keys)
	for kind, known := range withKeys {
		all["with of "+string(kind)] = known
	}
	maps.Copy(all, partKeys)
	return all
}
