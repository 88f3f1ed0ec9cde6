package gatehouse

import (
	"slices"
	"strconv"
	"time"
)

// Question returns the digest of the data that an approval freezes at its creation: the number
// of approvers, the people who may and may not decide, creation and expiry, the schedule, the
// value to retype, and the subject. The log entry of the proposal holds the digest, so that a
// change of the row outside the server is detected.
func (a *Approval) Question() Digest {
	confirm := JSON("null")
	if a.Confirm != nil {
		confirm = ObjectJSON(Member{"prompt", StringJSON(a.Confirm.Prompt)}, Member{"value", StringJSON(a.Confirm.Value)})
	}
	members := []Member{
		{"approval", StringJSON(a.ID)},
		{"confirm", confirm},
		{"created_at", micros(a.CreatedAt)},
		{"excluded", set(a.Excluded)},
		{"expires_at", micros(a.End())},
		{"groups", set(a.Groups)},
		{"people", set(a.People)},
		{"required", JSON(strconv.Itoa(a.Required))},
		{"roles", set(a.Roles)},
	}
	if a.About != nil {
		members = append(members, Member{"about", MustJSON(a.About)})
	}
	timing := &a.Timing
	if timing.IsZero() {
		return NewDigest(ObjectJSON(append(members, Member{"v", "1"})...))
	}
	return NewDigest(ObjectJSON(append(members, Member{"schedule", timing.schedule()}, Member{"v", "2"})...))
}

// schedule returns the schedule as Question hashes it.
func (s *Timing) schedule() JSON {
	stages := make([]JSON, 0, len(s.Stages))
	for _, stage := range s.Stages {
		stages = append(stages, ObjectJSON(
			Member{"for", JSON(strconv.FormatInt(stage.For.D().Microseconds(), 10))},
			Member{"groups", set(stage.Who.Groups)},
			Member{"notify", set(stage.Notify)},
			Member{"people", set(stage.Who.People)},
			Member{"roles", set(stage.Who.Roles)},
		))
	}
	reminders := make([]JSON, 0, len(s.Reminders))
	for _, d := range s.Reminders {
		reminders = append(reminders, JSON(strconv.FormatInt(d.D().Microseconds(), 10)))
	}
	return ObjectJSON(
		Member{"extend_by", JSON(strconv.FormatInt(s.ExtendBy.D().Microseconds(), 10))},
		Member{"on_timeout", StringJSON(string(s.OnTimeout))},
		Member{"reminders", ArrayJSON(reminders...)},
		Member{"stages", ArrayJSON(stages...)},
	)
}

// micros returns a time as the stores keep it: microseconds since 1970.
func micros(t time.Time) JSON { return JSON(strconv.FormatInt(t.UnixMicro(), 10)) }

// set returns a list as a sorted array without duplicates.
func set[T ~string](list []T) JSON {
	list = slices.Clone(list)
	slices.Sort(list)
	items := make([]JSON, 0, len(list))
	for _, s := range slices.Compact(list) {
		items = append(items, StringJSON(string(s)))
	}
	return ArrayJSON(items...)
}
