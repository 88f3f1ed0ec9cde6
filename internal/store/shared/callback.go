package shared

import "github.com/gatehouse-dev/gatehouse"

// Callback is a callback as it is stored: with the sealed task token.
type Callback struct {
	gatehouse.Callback
	Sealed string `json:"sealed,omitempty"`
}

// storeCallback returns the stored form of a callback; nil for none.
func storeCallback(c *gatehouse.Callback) *Callback {
	if c == nil {
		return nil
	}
	return &Callback{*c, c.Sealed}
}

// Load returns the callback from its stored form.
func (c *Callback) Load() *gatehouse.Callback {
	if c == nil {
		return nil
	}
	c.Callback.Sealed = c.Sealed
	return &c.Callback
}
