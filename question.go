package gatehouse

import (
	"slices"
	"strconv"
	"time"
)

// Question returns the digest of what an approval freezes when it is created:
// how many people must approve, who may, who may not, from when until when, and
// what they retype. The log's entry of the proposal holds it, so that a row that
// was changed past the server is found.
func (a *Approval) Question() Digest {
	confirm := JSON("null")
	if a.Confirm != nil {
		confirm = ObjectJSON(Member{"prompt", StringJSON(a.Confirm.Prompt)}, Member{"value", StringJSON(a.Confirm.Value)})
	}
	return NewDigest(ObjectJSON(
		Member{"approval", StringJSON(a.ID)},
		Member{"confirm", confirm},
		Member{"created_at", micros(a.CreatedAt)},
		Member{"excluded", set(a.Excluded)},
		Member{"expires_at", micros(a.ExpiresAt)},
		Member{"groups", set(a.Groups)},
		Member{"people", set(a.People)},
		Member{"required", JSON(strconv.Itoa(a.Required))},
		Member{"roles", set(a.Roles)},
		Member{"v", "1"},
	))
}

// micros is a time as the stores keep it: microseconds since 1970.
func micros(t time.Time) JSON { return JSON(strconv.FormatInt(t.UnixMicro(), 10)) }

// set is a list without regard to its order.
func set[T ~string](list []T) JSON {
	list = slices.Clone(list)
	slices.Sort(list)
	items := make([]JSON, 0, len(list))
	for _, s := range slices.Compact(list) {
		items = append(items, StringJSON(string(s)))
	}
	return ArrayJSON(items...)
}
