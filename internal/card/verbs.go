package card

import (
	"slices"
	"strings"
)

// typeWords are verbs for the action types of the default policy, for operations
// whose names say nothing.
var typeWords = map[string]string{
	"note": "Add a note to", "tag": "Tag", "classification": "Classify", "labels": "Label",
	"internal_notes": "Add internal notes to",
	"field_update":   "Change a field of", "spec_update": "Change the specification of", "assignment": "Assign",
	"create_customer_program": "Create a customer program for", "price_change": "Change the price of",
	"update_vendor_cost": "Change the vendor's cost of", "bid_status_update": "Change the bid status of",
	"quote_draft":     "Draft a quote for",
	"vendor_failover": "Switch the vendor of", "bulk_cost_basis": "Change the cost basis of",
	"collection_action": "Take a collection action on",
	"email_to_customer": "Send an e-mail to", "create_customer": "Create", "create_vendor": "Create",
	"create_item": "Create",
	"soft_delete": "Soft-delete", "bulk_delete": "Delete", "destructive_bulk": "Destroy or overwrite",
	"mass_price_change": "Change the prices of",
}

// neutral are operation names that do not say what the operation does.
var neutral = []string{"post", "put", "send", "call", "execute", "exec", "apply", "push", "run", "invoke", "do",
	"request", "submit", "write", "upsert", "process", "perform", "operation", "bulk"}

func isNeutral(operation string) bool {
	w := wordsOf(strings.TrimPrefix(operation, "bulk_"))
	return len(w) == 0 || len(w) == 1 && slices.Contains(neutral, strings.ToLower(w[0]))
}

// typePrefixes are ignored prefixes of action types, as in the default policy.
var typePrefixes = []string{"ns_", "propose_", "workflow_"}

// typeWord returns the verb for an action type, "" when there is none.
func typeWord(actionType string) string {
	for {
		if w, ok := typeWords[actionType]; ok {
			return w
		}
		i := slices.IndexFunc(typePrefixes, func(p string) bool { return strings.HasPrefix(actionType, p) })
		if i < 0 {
			return ""
		}
		actionType = actionType[len(typePrefixes[i]):]
	}
}

// generic is the verb of an operation without a plain effect: the operation's name,
// or the action type's verb when the name says nothing.
func (n *narrator) generic() string {
	w := wordsOf(strings.TrimPrefix(n.a.Operation, "bulk_"))
	if isNeutral(n.a.Operation) {
		if words := typeWord(n.a.ActionType); words != "" {
			return words
		}
		return "Run " + token(n.a.Operation, longInSentence) + " on"
	}
	verb := capital(strings.ToLower(strings.Join(w, " ")))
	if len(w) > 1 {
		verb += " for"
	}
	return verb
}
