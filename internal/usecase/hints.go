package usecase

// Hints distributes wake-ups, which may be lost.
type Hints interface {
	Notify(topic string)
	// Subscribe returns a channel that receives after a Notify on any of the
	// topics, and a function that ends the subscription.
	Subscribe(topics ...string) (<-chan struct{}, func())
}

// Topics of hints that several packages use. The topic of a single action is its id.
const (
	TopicPush  = "push"
	TopicAudit = "audit"
	// TopicSecrets: a secret of the store has changed.
	TopicSecrets = "secrets"
	// TopicConnectors: the store has another version of the connectors.
	TopicConnectors = "connectors"
)

// TopicLog is the topic of one tenant's log. It is notified when entries are
// numbered, and when a run changes without an entry; other tenants never cause a
// notification.
func TopicLog(tenant string) string { return "log:" + tenant }
