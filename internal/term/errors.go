package term

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"time"

	"github.com/gatehouse-dev/gatehouse"
)

// IsUnreachable reports whether an error is about the connection: there is no server, or the
// connection ended before an answer began.
func IsUnreachable(err error) bool {
	var u *url.Error
	return errors.As(err, &u) && !errors.Is(err, context.Canceled)
}

// ErrorText is the text of an error for a person. For a connection error it names the server and
// the reason, without the request.
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

// Passing reports whether a retry may succeed: the server is busy, restarting, was not reached, or
// the connection ended within an answer. A refused certificate stays refused.
func Passing(err error) bool {
	var certificate *tls.CertificateVerificationError
	if errors.As(err, &certificate) {
		return false
	}
	var e *gatehouse.Error
	var broken *net.OpError
	return IsUnreachable(err) || errors.As(err, &e) && e.Code.Retryable() ||
		errors.Is(err, io.ErrUnexpectedEOF) || errors.As(err, &broken) && !errors.Is(err, context.Canceled)
}

// RetryIn is the wait before a retry.
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

// MayRebase reports whether the gate can propose the change again on the target's present state.
func MayRebase(err error) bool {
	var e *gatehouse.Error
	return errors.As(err, &e) && fmt.Sprint(e.Context["can_rebase"]) == "true"
}

// ContextText formats a value of an error's context; false if there is nothing to show.
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
