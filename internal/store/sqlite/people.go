package sqlite

import (
	"slices"
	"sync"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/store/shared"
)

// maxPeople bounds the cached entries of each kind; a full map is emptied.
const maxPeople = 4096

// credentials caches API keys and edit tokens, so that a request is
// authenticated without a read of the file. The cache is exact: one process
// owns the file, and after an Update that wrote identity data the whole cache
// is dropped before its caller is answered. A View that read before such an
// Update presents an old epoch, and its result is not cached.
type credentials struct {
	mu     sync.Mutex
	epoch  uint64
	keys   map[[32]byte]cachedKey
	tokens map[principalID][32]byte
}

type cachedKey struct {
	key       gatehouse.Key
	principal gatehouse.Principal
}

type principalID struct{ tenant, id string }

// key returns a cached key, and the epoch to pass to keepKey if there is none.
func (c *credentials) key(hash [32]byte) (*gatehouse.Key, *gatehouse.Principal, uint64) {
	c.mu.Lock()
	cached, found := c.keys[hash]
	epoch := c.epoch
	c.mu.Unlock()
	if !found {
		return nil, nil, epoch
	}
	return &cached.key, copied(&cached.principal), epoch
}

func (c *credentials) keepKey(epoch uint64, k *gatehouse.Key, p *gatehouse.Principal) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if epoch != c.epoch {
		return
	}
	if c.keys == nil || len(c.keys) >= maxPeople {
		c.keys = make(map[[32]byte]cachedKey)
	}
	c.keys[k.Hash] = cachedKey{*k, *copied(p)}
}

func (c *credentials) token(of principalID) (hash [32]byte, found bool, epoch uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	hash, found = c.tokens[of]
	return hash, found, c.epoch
}

func (c *credentials) keepToken(epoch uint64, of principalID, hash [32]byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if epoch != c.epoch {
		return
	}
	if c.tokens == nil || len(c.tokens) >= maxPeople {
		c.tokens = make(map[principalID][32]byte)
	}
	c.tokens[of] = hash
}

func (c *credentials) forget() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.epoch++
	c.keys, c.tokens = nil, nil
}

// people caches principals that the writer has read, for later batches: only
// the writer changes them. Only the writer's goroutine uses it.
type people struct {
	// by holds a principal under its id and under the name that it was looked
	// up by.
	by map[principalID]*gatehouse.Principal
	// byAudience holds the first answerers of questions, by audience: at most maxPeople principals in all.
	byAudience map[audience][]*gatehouse.Principal
	// touched is set from a write of identity data to the end of its
	// transaction, while it is not known whether the write will be committed.
	touched bool
}

// actives caches the number of each tenant's active policy version. As in people, only the
// writer changes it.
type actives struct {
	by      map[string]int
	touched bool
}

func (a *actives) find(tenant string, load func() (int, error)) (int, error) {
	if a.touched {
		return load()
	}
	if n, found := a.by[tenant]; found {
		return n, nil
	}
	n, err := load()
	if err != nil {
		return 0, err
	}
	if a.by == nil || len(a.by) >= maxPeople {
		a.by = make(map[string]int)
	}
	a.by[tenant] = n
	return n, nil
}

func (a *actives) touch() { a.by, a.touched = nil, true }

func (p *people) find(
	tenant, idOrName string, load func() (*gatehouse.Principal, error),
) (*gatehouse.Principal, error) {
	if p.touched {
		return load()
	}
	at := principalID{tenant, idOrName}
	if found := p.by[at]; found != nil {
		return copied(found), nil
	}
	found, err := load()
	if err != nil {
		return nil, err
	}
	if p.by == nil || len(p.by) >= maxPeople {
		p.by = make(map[principalID]*gatehouse.Principal)
	}
	p.by[at] = copied(found)
	return found, nil
}

// audience is the audience of a question in a tenant, in the store's encoding.
type audience struct{ tenant, roles, people, groups string }

// answerers returns principals that callers must not change.
func (p *people) answerers(
	tenant string, asked gatehouse.Audience, load func() ([]*gatehouse.Principal, error),
) ([]*gatehouse.Principal, error) {
	if p.touched {
		return load()
	}
	at := audience{tenant: tenant}
	at.roles, at.people, at.groups = shared.EncodeAudience(asked)
	if found, known := p.byAudience[at]; known {
		return found, nil
	}
	found, err := load()
	if err != nil {
		return nil, err
	}
	if p.byAudience == nil || len(p.byAudience) >= maxPeople/gatehouse.MaxFirstAnswerers {
		p.byAudience = make(map[audience][]*gatehouse.Principal)
	}
	p.byAudience[at] = found
	return found, nil
}

func (p *people) touch() {
	p.by, p.touched = nil, true
	p.byAudience = nil
}

// settle runs after each transaction, committed or not, and drops the credential
// cache if identity data was written.
func (w *writer) settle() {
	w.actives.touched = false
	if w.people.touched {
		w.people.touched = false
		w.s.credentials.forget()
	}
}

// copied returns a copy, so that callers cannot change the cached principal.
func copied(p *gatehouse.Principal) *gatehouse.Principal {
	c := *p
	c.Roles, c.Groups = slices.Clone(p.Roles), slices.Clone(p.Groups)
	return &c
}
