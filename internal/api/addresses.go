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

// Limits on wrong secrets and on sign-ins that begin. Each address has wrongBurst wrong secrets at once, then
// one per wrongEvery; and beginBurst beginnings at once, then one per beginEvery, which is a small part of what a
// process begins for all. At most maxAddresses addresses for each of the two, and maxRight keys, are remembered.
const (
	wrongBurst   = 20
	wrongEvery   = 3 * time.Second
	beginBurst   = 20
	beginEvery   = time.Second
	maxAddresses = 20_000
	maxRight     = 10_000
)

// Addresses bounds the failed authentication attempts of each address, by key
// or sign-in, and the sign-ins that it begins. Its state is local to the process
// and bounded. The zero value is ready to use.
type Addresses struct {
	// Trusted are the proxies whose X-Forwarded-For header is trusted.
	Trusted []netip.Prefix

	mu     sync.Mutex
	failed spending
	begun  spending
	right  map[[sha256.Size]byte]struct{} // hashes of correct secrets
	now    func() time.Time               // nil for time.Now
}

// spending counts the attempts of each address.
type spending map[string]attempts

// attempts counts the attempts of one address: spent is the used part of its burst at the time since.
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
	at := a.failed.refilled(a.Of(r), wrongEvery, a.clock())
	if at.spent <= wrongBurst-1 {
		return nil
	}
	if _, right := a.right[sha256.Sum256([]byte(secret))]; right && secret != "" {
		return nil
	}
	return rateLimited(time.Duration((at.spent - wrongBurst + 1) * float64(wrongEvery)))
}

// refilled returns the attempts of an address; one is refilled in each period every, up to now.
func (s spending) refilled(address string, every time.Duration, now time.Time) attempts {
	at, known := s[address]
	if !known {
		return attempts{since: now}
	}
	at.spent = max(0, at.spent-float64(now.Sub(at.since))/float64(every))
	at.since = now
	return at
}

// count counts an attempt; an address spends at most burst.
func (s *spending) count(address string, burst float64, every time.Duration, now time.Time) {
	at := s.refilled(address, every, now)
	at.spent = min(at.spent+1, burst)
	if *s == nil || len(*s) >= maxAddresses {
		s.forget(every, now)
	}
	(*s)[address] = at
}

// forget makes room: it keeps at most half of maxAddresses, and no fully refilled
// address.
func (s *spending) forget(every time.Duration, now time.Time) {
	kept := make(spending, len(*s))
	for address := range *s {
		if at := s.refilled(address, every, now); at.spent > 0 && len(kept) < maxAddresses/2 {
			kept[address] = at
		}
	}
	*s = kept
}

// Failed counts an attempt with a wrong secret.
func (a *Addresses) Failed(r *http.Request) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.failed.count(a.Of(r), wrongBurst, wrongEvery, a.clock())
}

// begin counts a sign-in that begins, or fails with code rate_limited if the request's address has begun too many.
func (a *Addresses) begin(r *http.Request) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	address, now := a.Of(r), a.clock()
	if at := a.begun.refilled(address, beginEvery, now); at.spent > beginBurst-1 {
		return rateLimited(time.Duration((at.spent - beginBurst + 1) * float64(beginEvery)))
	}
	a.begun.count(address, beginBurst, beginEvery, now)
	return nil
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

// SignIn bounds the sign-ins that each address begins, and its failed ones. step reports whether a
// request begins a sign-in, for which it needs no secret, or finishes one with a secret. A response to a
// request that finishes, with a client error other than 429, counts as a failure.
func (a *Addresses) SignIn(next http.Handler, step func(*http.Request) (begins, finishes bool)) http.Handler {
	refuse := func(w http.ResponseWriter, err error, after string) {
		w.Header().Set("Retry-After", after)
		http.Error(w, err.Error(), gatehouse.StatusOf(gatehouse.CodeRateLimited))
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		begins, finishes := step(r)
		if begins {
			if err := a.begin(r); err != nil {
				refuse(w, err, "1")
				return
			}
		}
		if !finishes {
			next.ServeHTTP(w, r)
			return
		}
		if err := a.Allow(r, ""); err != nil {
			refuse(w, err, "3")
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
