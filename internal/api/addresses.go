package api

import (
	"crypto/sha256"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/gatehouse-dev/gatehouse"
)

// Limits on wrong secrets. Each address has wrongBurst attempts at once, then
// one per wrongEvery. At most maxAddresses addresses and maxRight keys are
// remembered.
const (
	wrongBurst   = 20
	wrongEvery   = 3 * time.Second
	maxAddresses = 20_000
	maxRight     = 10_000
)

// Addresses bounds the failed authentication attempts of each address, by key
// or sign-in. Its state is local to the process and bounded. The zero value is
// ready to use.
type Addresses struct {
	// Trusted are the proxies whose X-Forwarded-For header is trusted.
	Trusted []netip.Prefix

	mu     sync.Mutex
	failed map[string]attempts
	right  map[[sha256.Size]byte]struct{} // hashes of correct secrets
	now    func() time.Time               // nil for time.Now
}

// attempts counts the failures of one address: spent is the used part of wrongBurst at the time since.
type attempts struct {
	spent float64
	since time.Time
}

func (a *Addresses) clock() time.Time {
	if a.now != nil {
		return a.now()
	}
	return time.Now()
}

// Allow fails with code rate_limited if the request's address has failed too often. A secret that this process
// remembers as right is allowed, so that a user who shares an address with an attacker is not locked out.
func (a *Addresses) Allow(r *http.Request, secret string) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	at := a.refilled(a.Of(r))
	if at.spent <= wrongBurst-1 {
		return nil
	}
	if _, right := a.right[sha256.Sum256([]byte(secret))]; right && secret != "" {
		return nil
	}
	return rateLimited(time.Duration((at.spent - wrongBurst + 1) * float64(wrongEvery)))
}

// refilled returns the attempts of an address, refilled up to now.
func (a *Addresses) refilled(address string) attempts {
	now := a.clock()
	at, known := a.failed[address]
	if !known {
		return attempts{since: now}
	}
	at.spent = max(0, at.spent-float64(now.Sub(at.since))/float64(wrongEvery))
	at.since = now
	return at
}

// Failed counts an attempt with a wrong secret.
func (a *Addresses) Failed(r *http.Request) {
	a.mu.Lock()
	defer a.mu.Unlock()
	address := a.Of(r)
	at := a.refilled(address)
	at.spent = min(at.spent+1, wrongBurst)
	if a.failed == nil || len(a.failed) >= maxAddresses {
		a.forget()
	}
	a.failed[address] = at
}

// forget makes room: it keeps at most half of maxAddresses, and no fully refilled
// address.
func (a *Addresses) forget() {
	kept := make(map[string]attempts, len(a.failed))
	for address := range a.failed {
		if at := a.refilled(address); at.spent > 0 && len(kept) < maxAddresses/2 {
			kept[address] = at
		}
	}
	a.failed = kept
}

// Right remembers a correct secret.
func (a *Addresses) Right(secret string) {
	key := sha256.Sum256([]byte(secret))
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.right == nil || len(a.right) >= maxRight {
		a.right = make(map[[sha256.Size]byte]struct{})
	}
	a.right[key] = struct{}{}
}

// Of returns the client's address; for IPv6 the /64, which belongs to one household
// or server. Behind a trusted proxy, the client is the last address in
// X-Forwarded-For that is not a trusted proxy.
func (a *Addresses) Of(r *http.Request) string {
	at, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return r.RemoteAddr
	}
	addr := at.Addr().Unmap().WithZone("")
	hops := strings.Split(strings.Join(r.Header.Values("X-Forwarded-For"), ","), ",")
	for i := len(hops) - 1; i >= 0 && a.trusts(addr); i-- {
		next, err := netip.ParseAddr(strings.TrimSpace(hops[i]))
		if err != nil {
			break
		}
		addr = next.Unmap().WithZone("")
	}
	if addr.Is4() {
		return addr.String()
	}
	if prefix, err := addr.Prefix(64); err == nil {
		return prefix.String()
	}
	return addr.String()
}

func (a *Addresses) trusts(addr netip.Addr) bool {
	return slices.ContainsFunc(a.Trusted, func(p netip.Prefix) bool { return p.Contains(addr) })
}

// local reports whether a request came from this machine, and not through a
// proxy on it.
func local(r *http.Request) bool {
	at, err := netip.ParseAddrPort(r.RemoteAddr)
	return err == nil && at.Addr().Unmap().IsLoopback() && r.Header.Get("X-Forwarded-For") == "" &&
		r.Header.Get("Forwarded") == "" &&
		r.Header.Get("X-Real-Ip") == ""
}

// SignIn bounds the failed sign-ins of each address. If attempt reports that a request
// tries to sign in, a response with a client error other than 429 counts as a failure.
func (a *Addresses) SignIn(next http.Handler, attempt func(*http.Request) bool) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !attempt(r) {
			next.ServeHTTP(w, r)
			return
		}
		if err := a.Allow(r, ""); err != nil {
			w.Header().Set("Retry-After", "3")
			http.Error(w, err.Error(), gatehouse.StatusOf(gatehouse.CodeRateLimited))
			return
		}
		seen := &statusWriter{ResponseWriter: w}
		next.ServeHTTP(seen, r)
		if seen.status >= 400 && seen.status < 500 && seen.status != http.StatusTooManyRequests {
			a.Failed(r)
		}
	})
}

// statusWriter records the status of a response.
type statusWriter struct {
	http.ResponseWriter
	status int
}

// Unwrap supports http.ResponseController.
func (w *statusWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

func (w *statusWriter) WriteHeader(status int) {
	w.status = status
	w.ResponseWriter.WriteHeader(status)
}
