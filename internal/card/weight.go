package card

import (
	"slices"
	"strings"
)

// weights are the words in the names of fields by how much a wrong value in them
// costs, the dearest first: where money goes, how somebody is reached, who may do
// what, what is gone. Money itself is before all of them.
var weights = [][]string{
	{"iban", "bic", "swift", "bank", "account", "routing", "payee", "beneficiary", "sepa", "bsb"},
	{"address", "street", "city", "zip", "postcode", "postal", "country", "email", "mail", "phone", "url", "webhook", "domain"},
	{"role", "roles", "permission", "permissions", "admin", "scope", "scopes", "owner", "access", "privilege", "privileges"},
	{"deleted", "delete", "archived", "disabled", "enabled", "active", "inactive", "closed", "suspended"},
	{"status", "state", "stage"},
	{"name", "title"},
}

// mainMoney are the names of money that matter most among others.
var mainMoney = []string{"price", "amount", "total", "cost"}

// salience orders fields: the less, the more a wrong value costs.
func salience(name string) int {
	if i := slices.Index(mainMoney, strings.ToLower(name)); i >= 0 {
		return i
	}
	if isMoney(name) {
		return len(mainMoney)
	}
	for i, list := range weights {
		for _, w := range wordsOf(name) {
			if slices.Contains(list, strings.ToLower(w)) {
				return len(mainMoney) + 1 + i
			}
		}
	}
	return len(mainMoney) + 1 + len(weights)
}

// ByWeight puts the fields whose wrong value costs most first; the parts of one
// field stay together, in their order.
func ByWeight(changes []Change) {
	slices.SortStableFunc(changes, func(x, y Change) int { return weightOf(x) - weightOf(y) })
}

func weightOf(c Change) int {
	steps := c.Steps
	if c.Key != "" && len(steps) > 1 || len(steps) == 0 {
		return 0 // records stay in their order
	}
	return salience(steps[0])
}

func isName(name string) bool { return slices.Contains(weights[len(weights)-1], strings.ToLower(name)) }
