package shared

import "github.com/gatehouse-dev/gatehouse"

// ScanChannelState reads the state of a channel, in the order of the columns in ChannelStates.
func ScanChannelState(r Row) (*gatehouse.ChannelState, error) {
	s := &gatehouse.ChannelState{
		Tenant: r.Text(), Channel: r.Text(), Failures: int(r.Int()), FailingSince: r.TimePtr(), Flaky: r.Bool(),
	}
	minutes, err := DecodeJSON[[]gatehouse.ChannelMinute](r.Text())
	if minutes != nil {
		s.Minutes = *minutes
	}
	s.OffAt, s.LastError, s.LastOKAt = r.TimePtr(), r.Text(), r.TimePtr()
	return s, err
}

// ChannelStates lists states by channel.
func (t Reads) ChannelStates() ([]*gatehouse.ChannelState, error) {
	return list(t, ScanChannelState, `
SELECT tenant, channel, failures, failing_since, flaky, minutes, off_at, last_error, last_ok_at
FROM channel_state WHERE tenant = $1 ORDER BY channel`, t.Tenant())
}

// PutChannelState writes a locked state.
func (t Writes) PutChannelState(s *gatehouse.ChannelState) error {
	if err := t.Owns(s.Tenant); err != nil {
		return err
	}
	minutes, err := EncodeJSON(&s.Minutes)
	if err != nil {
		return err
	}
	return t.WriteOrFail(gatehouse.ErrConflict, `
UPDATE channel_state SET failures = $1, failing_since = $2, flaky = $3, minutes = $4, off_at = $5,
  last_error = $6, last_ok_at = $7
WHERE tenant = $8 AND channel = $9`,
		s.Failures, s.FailingSince, s.Flaky, minutes, s.OffAt, s.LastError, s.LastOKAt, s.Tenant, s.Channel)
}
