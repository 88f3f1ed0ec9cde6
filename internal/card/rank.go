package card

import (
	"slices"
	"strings"

	"github.com/gatehouse-dev/gatehouse"
)

// rankWords groups words in field names by the cost of a wrong value, the highest
// first: bank details, contact details, permissions, deletion, state, names. Fields
// with amounts of money precede all groups.
var rankWords = [][]string{
	{"iban", "bic", "swift", "bank", "account", "routing", "payee", "beneficiary", "sepa", "bsb"},
	{"address", "street", "city", "zip", "postcode", "postal", "country", "email", "mail", "phone", "url", "webhook",
		"domain"},
	{"role", "roles", "permission", "permissions", "admin", "scope", "scopes", "owner", "access", "privilege",
		"privileges"},
	{"deleted", "delete", "archived", "disabled", "enabled", "active", "inactive", "closed", "suspended"},
	{"status", "state", "stage"},
	{"name", "title"},
}

// mainMoney are the most important field names of amounts.
var mainMoney = [...]string{"price", "amount", "total", "cost"}

// nameRank orders fields: a lower number means a costlier wrong value.
func nameRank(name string) int {
	if i := slices.Index(mainMoney[:], strings.ToLower(name)); i >= 0 {
		return i
	}
	if isMoney(name) {
		return len(mainMoney)
	}
	for i, list := range rankWords {
		for _, w := range wordsOf(name) {
			if slices.Contains(list, strings.ToLower(w)) {
				return otherCurrency + 1 + i
			}
		}
	}
	return otherCurrency + 1 + len(rankWords)
}

// otherCurrency is the rank of a currency that is replaced by another: directly after the
// amounts, whose meaning it changes.
const otherCurrency = len(mainMoney) + 1

// changeRank is the rank of a change to the field of the given name.
func changeRank(name string, c Change) int {
	if c.Kind == Changed && isCurrency(name) {
		return otherCurrency
	}
	return nameRank(name)
}

// money reports whether a field holds money: see [declare].
func (f field) money() bool {
	return slices.ContainsFunc(f.changes, func(c Change) bool { return c.money })
}

// lowestRank is the lowest rank of the field's changes; a declared amount comes first.
func (f field) lowestRank() int {
	least := nameRank(f.name)
	for _, c := range slices.Concat(f.changes, f.common) {
		if c.declared != nil {
			return 0
		}
		least = min(least, changeRank(f.name, c))
	}
	return least
}

// ByRank sorts the fields by the cost of a wrong value, the highest first. The
// parts of one field stay together, in order, except that declared amounts come first, and
// with them the rest of an added or removed list element.
func ByRank(changes []Change) {
	declaring := map[string]bool{} // added and removed list elements with a declared amount, which stay whole
	for _, c := range changes {
		if at := elementOf(c); at > 0 && c.declared != nil {
			declaring[gatehouse.JoinPointer(c.Steps[:at+1]...)] = true
		}
	}
	rank := func(c Change) int {
		if at := elementOf(c); at > 0 && declaring[gatehouse.JoinPointer(c.Steps[:at+1]...)] {
			return 0
		}
		return listRank(c)
	}
	slices.SortStableFunc(changes, func(x, y Change) int { return rank(x) - rank(y) })
}

func listRank(c Change) int {
	steps := c.Steps
	if c.Key != "" && len(steps) > 1 || len(steps) == 0 {
		return 0 // records keep their order
	}
	if c.declared != nil {
		return 0
	}
	return changeRank(steps[0], c)
}

func isName(name string) bool {
	return slices.Contains(rankWords[len(rankWords)-1], strings.ToLower(name))
}
