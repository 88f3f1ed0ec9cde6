package proof

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
)

// rules is the policy of the proofs: the default's levels, and types for
// particular proofs.
const rules = `version: 1
risk:
  note: 1
  price_change: 3
  create_item: 4
  bulk_delete: 5
rules:
  - {id: safe-changes, when: 'risk <= 2', then: allow, reason: nobody is needed}
  - {id: forbidden, when: 'action.type == "forbidden"', then: deny, reason: never}
  - {id: held, when: 'action.type == "held"', then: needs_approval, hold: 1h, reason: rests}
  - {id: rested, when: 'action.type == "rested"', then: needs_approval, hold: 1s, reason: rests a second}
  - {id: pair, when: 'action.type == "pair"', then: needs_approval, required: 2, reason: two persons}
  - {id: trio, when: 'action.type == "trio"', then: needs_approval, required: 3, reason: three persons}
  - {id: named, when: 'action.type == "named"', then: needs_approval, people: [nadia], reason: she knows}
ceilings:
  - {name: by-count, when: 'action.type == "counted"', per: tenant, window: 24h, count: 25}
  - {name: by-amount, when: 'action.type == "weighed"', per: tenant, window: 24h, limit: 250.00, amount: change.price}
`

// quick makes retries and rescues fast, so that a storm heals in seconds.
const quick = `dispatch: {hold: 0s, retries: 100, backoff: [100ms, 300ms, 1s], lease: 1s}`

// healing adds breakers that retry after a second: a target that a proof breaks
// is soon well again.
func healing(dispatch string) string {
	return strings.Replace(dispatch, "dispatch: {", "dispatch: {breaker: {open: 1s, longest: 1s}, ", 1)
}

// world is a gate with its people and its targets.
type world struct {
	*gate
	shop   *shop
	target *target
	mix    *mixture // nil for none
	agent  *person
	next   atomic.Int64 // the next unused item
	items  int64
}

// newWorld creates a world with that many items on a data folder. dispatch is a
// line of configuration, "" means quick.
func newWorld(t testing.TB, items int, dispatch string) *world {
	t.Helper()
	return newWorldOn(t, onSQLite, items, dispatch)
}

// newWorldOn is newWorld on a given engine.
func newWorldOn(t testing.TB, e engine, items int, dispatch string) *world {
	t.Helper()
	if dispatch == "" {
		dispatch = quick
	}
	w := &world{shop: newShop(t, items), target: newTarget(t), items: int64(items)}
	crm := w.target.server.URL
	if e.target != nil {
		crm = e.target(crm)
	}
	w.gate = newGate(t, e, configuration(w.shop, crm)+healing(dispatch), rules)
	w.agent = w.admin.create(t, "bot", "agent", "proposer")
	return w
}

func configuration(s *shop, crm string) string {
	return strings.NewReplacer("SHOP", s.path, "CRM", crm).Replace(`connectors:
  shop:
    type: sql
    dsn: "sqlite:SHOP"
    entities: {item: {table: items, key: sku, version: version}}
    tenants: [default, north, south]
  crm:
    type: http
    base_url: "CRM"
    allow_private: true
    tenants: [default, north, south]
    headers: {X-Digest: "{digest}"}
    operations:
      update:
        method: PATCH
        path: "/{entity_type}/{entity_ref}"
        class: A
        floor: 1
        check: {path: "/{entity_type}/{entity_ref}", version: /version, state: /state}
        reverse: {operation: update}
      once:
        method: POST
        path: "/once/{entity_type}/{entity_ref}"
        class: C
        idempotency_header: Idempotency-Key
        check: {path: "/{entity_type}/{entity_ref}", version: /version, state: /state}
      keyed:
        method: PATCH
        path: "/{entity_type}/{entity_ref}"
        class: A
      blind:
        method: POST
        path: "/once/{entity_type}/{entity_ref}"
        class: C
        idempotency_header: Idempotency-Key
`)
}

// sku returns an item that no other proof has used.
func (w *world) sku() string {
	n := w.next.Add(1) - 1
	if n >= w.items {
		panic("the shop of this proof has too few items")
	}
	return fmt.Sprintf("SKU-%d", n)
}

// price proposes a price for an item of the shop.
func price(sku, amount string, more ...object) object {
	return merged(object{
		"action_type": "price_change", "connector": "shop", "operation": "update",
		"target":        object{"entity_type": "item", "entity_ref": sku, "version": "1"},
		"current_state": object{"price": "10.00"}, "proposed_change": object{"price": amount},
	}, more...)
}

// contact proposes a value for a contact of the crm. The operation is update or
// once, or keyed or blind, which are the same without a check of the target.
func contact(ref, operation, value string, more ...object) object {
	return merged(object{
		"action_type": "contact_change", "connector": "crm", "operation": operation,
		"target":        object{"entity_type": "contact", "entity_ref": ref, "version": "1"},
		"current_state": object{"value": "old"}, "proposed_change": object{"value": value},
	}, more...)
}

func merged(o object, more ...object) object {
	for _, m := range more {
		for k, v := range m {
			if v == nil {
				delete(o, k)
				continue
			}
			o[k] = v
		}
	}
	return o
}
