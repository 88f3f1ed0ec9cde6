package term

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"time"

	"github.com/gatehouse-dev/gatehouse"
)

// IsUnreachable reports whether an error is of the connection: no server, or
// none that answered in full.
func IsUnreachable(err error) bool {
	var u *url.Error
	return errors.As(err, &u) && !errors.Is(err, context.Canceled)
}

// ErrorText is what an error says to a person: of a connection, which server was
// not reached and why, without the request that was on its way.
func ErrorText(err error) string {
	var u *url.Error
	if !IsUnreachable(err) || !errors.As(err, &u) {
		return err.Error()
	}
	server := u.URL
	if at, perr := url.Parse(u.URL); perr == nil {
		server = at.Scheme + "://" + at.Host
	}
	return "no answer from " + server + ": " + u.Err.Error()
}

// Passing reports whether an error may be gone when one asks again: the server
// is busy, restarting, or was not reached.
func Passing(err error) bool {
	var e *gatehouse.Error
	return IsUnreachable(err) || errors.As(err, &e) && e.Code.Retryable()
}

// RetryIn is how long to wait after an error that a retry may mend.
func RetryIn(err error) time.Duration {
	var e *gatehouse.Error
	if errors.As(err, &e) && e.RetryAfter > 0 {
		return time.Duration(e.RetryAfter) * time.Second
	}
	return time.Second
}

// MayAcknowledge reports whether a target that has changed may be overwritten.
func MayAcknowledge(err error) bool {
	var e *gatehouse.Error
	return errors.As(err, &e) && fmt.Sprint(e.Context["can_acknowledge"]) == "true"
}

// MayRebase reports whether the gate can propose the change on the present state.
func MayRebase(err error) bool {
	var e *gatehouse.Error
	return errors.As(err, &e) && fmt.Sprint(e.Context["can_rebase"]) == "true"
}

// ContextText shows a value of an error's context, if there is something to show.
func ContextText(v any) (string, bool) {
	switch v := v.(type) {
	case nil:
		return "", false
	case string:
		return v, v != ""
	}
	b, err := json.Marshal(v)
	return string(b), err == nil
}
