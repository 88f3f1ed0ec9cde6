package gate

import (
	"crypto/sha256"
	"crypto/subtle"
	"slices"
	"strings"
	"sync"

	"github.com/gatehouse-dev/gatehouse"
)

// maxCached bounds the cache; a full cache is emptied.
const maxCached = 4096

// credentialCache maps hashes of keys to principals, and principals to hashes of edit
// tokens, so that a request need not query a remote store before its own transaction. It
// has no authority: other processes change keys and people, so the transaction that acts
// for a cached caller verifies the caller. All methods but find do nothing on a nil cache.
type credentialCache struct {
	mu     sync.Mutex
	keys   map[[32]byte]gatehouse.Principal
	tokens map[personKey][32]byte
}

type personKey struct{ tenant, id string }

func (m *credentialCache) keep(key [32]byte, p *gatehouse.Principal) {
	if m == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.keys == nil || len(m.keys) >= maxCached {
		m.keys = make(map[[32]byte]gatehouse.Principal)
	}
	c := *p
	c.Roles, c.Groups = slices.Clone(p.Roles), slices.Clone(p.Groups)
	m.keys[key] = c
}

func (m *credentialCache) keepToken(p *gatehouse.Principal, hash [32]byte) {
	if m == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.tokens == nil || len(m.tokens) >= maxCached {
		m.tokens = make(map[personKey][32]byte)
	}
	m.tokens[personKey{p.Tenant, p.ID}] = hash
}

func (m *credentialCache) forget(key [32]byte) {
	if m == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.keys, key)
}

func (m *credentialCache) find(key [32]byte) (p *gatehouse.Principal, token [32]byte) {
	m.mu.Lock()
	defer m.mu.Unlock()
	c, found := m.keys[key]
	if !found {
		return nil, token
	}
	c.Roles, c.Groups = slices.Clone(c.Roles), slices.Clone(c.Groups)
	return &c, m.tokens[personKey{c.Tenant, c.ID}]
}

// CachedCaller returns the cached caller with these secrets. The use case verifies the
// caller: see [gatehouse.CachedCredential]. CachedCaller returns nil when the key is not
// cached, when the edit token is not the cached one, when the principal was disabled, and
// when the store is local.
func (g *Gate) CachedCaller(key, editToken string) *gatehouse.Caller {
	if g.credentials == nil || !strings.HasPrefix(key, keyPrefix) || len(key) > 256 || len(editToken) > 256 {
		return nil
	}
	credential := &gatehouse.CachedCredential{Key: sha256.Sum256([]byte(key))}
	p, token := g.credentials.find(credential.Key)
	if p == nil || p.Disabled {
		return nil
	}
	c := &gatehouse.Caller{Principal: p, Cached: credential}
	if editToken != "" {
		credential.EditToken = sha256.Sum256([]byte(editToken))
		if subtle.ConstantTimeCompare(token[:], credential.EditToken[:]) != 1 {
			return nil
		}
		c.StepUp = true
	}
	return c
}
