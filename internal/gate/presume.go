package gate

import (
	"crypto/sha256"
	"crypto/subtle"
	"slices"
	"strings"
	"sync"

	"github.com/gatehouse-dev/gatehouse"
)

// maxRemembered bounds the cache; a full cache is emptied.
const maxRemembered = 4096

// remembered is the credential cache: it maps keys to principals and principals to
// edit tokens, so that a request need not query a remote store before its own
// transaction. It has no authority: other processes change keys and people, so the
// transaction that acts for a cached caller verifies it. Methods of a nil cache do
// nothing.
type remembered struct {
	mu     sync.Mutex
	keys   map[[32]byte]gatehouse.Principal
	tokens map[personKey][32]byte
}

type personKey struct{ tenant, id string }

func (m *remembered) keep(key [32]byte, p *gatehouse.Principal) {
	if m == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.keys == nil || len(m.keys) >= maxRemembered {
		m.keys = make(map[[32]byte]gatehouse.Principal)
	}
	c := *p
	c.Roles, c.Groups = slices.Clone(p.Roles), slices.Clone(p.Groups)
	m.keys[key] = c
}

func (m *remembered) keepToken(p *gatehouse.Principal, hash [32]byte) {
	if m == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.tokens == nil || len(m.tokens) >= maxRemembered {
		m.tokens = make(map[personKey][32]byte)
	}
	m.tokens[personKey{p.Tenant, p.ID}] = hash
}

func (m *remembered) forget(key [32]byte) {
	if m == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.keys, key)
}

func (m *remembered) find(key [32]byte) (p *gatehouse.Principal, token [32]byte) {
	m.mu.Lock()
	defer m.mu.Unlock()
	c, found := m.keys[key]
	if !found {
		return nil, token
	}
	c.Roles, c.Groups = slices.Clone(c.Roles), slices.Clone(c.Groups)
	return &c, m.tokens[personKey{c.Tenant, c.ID}]
}

// Presume returns the cached caller with these secrets, for the use case to verify:
// see [gatehouse.Presumption]. It returns nil when the key is not cached, when the
// edit token is not the cached one, and when the store is local.
func (g *Gate) Presume(key, editToken string) *gatehouse.Caller {
	if g.remembered == nil || !strings.HasPrefix(key, keyPrefix) || len(key) > 256 || len(editToken) > 256 {
		return nil
	}
	presumed := &gatehouse.Presumption{Key: sha256.Sum256([]byte(key))}
	p, token := g.remembered.find(presumed.Key)
	if p == nil || p.Disabled {
		return nil
	}
	c := &gatehouse.Caller{Principal: p, Presumed: presumed}
	if editToken != "" {
		presumed.EditToken = sha256.Sum256([]byte(editToken))
		if subtle.ConstantTimeCompare(token[:], presumed.EditToken[:]) != 1 {
			return nil
		}
		c.StepUp = true
	}
	return c
}
