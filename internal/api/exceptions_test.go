package api

// The exceptions of the tests that walk the table of routes, by the route's name, each with its
// reason. A route without an exception needs no line here.

// withoutIdempotencyKey has the POST routes that do not read Idempotency-Key.
var withoutIdempotencyKey = map[string]string{
	"drain": "a repeat finds less to do", "markUnknown": "a repeat finds less to do",
	"askTargets": "a repeat finds less to do", "dismissNotices": "a repeat finds less to do",
	"revokeKey": "a repeat changes nothing", "revokeSession": "a repeat changes nothing",
	"activatePolicy": "a repeat changes nothing",
	"explainPolicy":  "reads", "checkStore": "reads",
	"rotateLinkKeys": "a repeat makes one more key, which does no harm",
	"revokeLinkKey":  "a repeat makes one more key, which does no harm",
	"setSecret":      "the hash of the request would be one of a secret",
	"rotateSecret":   "the hash of the request would be one of a secret",
	"revokeSecret":   "a repeat changes nothing",
	"testDevice":     "a repeat sends one more test", "testChannel": "a repeat sends one more test",
	"retryNotification": "a repeat is refused as too late",
	"leaseSteps":        "an old lease is useless", "heartbeatStep": "an old lease is useless",
	"leasePushes": "an old lease is useless", "heartbeatPush": "an old lease is useless",
}

// withoutEditToken has the routes that change something without the edit token, each
// with the reason why that gives a stolen key no more power.
var withoutEditToken = map[string]string{
	"propose": "others decide", "proposeMandate": "others decide", "revise": "others decide",
	"rebase": "others decide", "reverse": "others decide",
	"cancel":        "takes the token where the use case needs it",
	"applyWorkflow": "a workflow's effects are proposed, and decided by others",
	"targetChanged": "has people look again", "startRun": "effects are proposed", "cancelRun": "ends work",
	"retryRun": "effects are proposed", "signalRun": "effects are proposed",
	"leaseSteps": "a worker's", "heartbeatStep": "a worker's", "completeStep": "a worker's", "failStep": "a worker's",
	"proposeStep": "a worker's",
	"leasePushes": "a worker's", "heartbeatPush": "a worker's", "completePush": "a worker's", "failPush": "a worker's",
	"drain": "carries out what was approved", "replayDeadLetters": "carries out what was approved",
	"resolvePush": "records what happened", "resolveDeadLetters": "records what happened",
	"discardDeadLetters": "only keeps a change from being made",
	"markUnknown":        "keeps pushes from being sent again", "askTargets": "reads targets",
	"checkStore": "reads", "previewArchive": "reads", "checkRoles": "reads", "explainPolicy": "reads",
	"dismissNotices": "hides notices from the caller only",
	"revokeSession":  "ends a way in and makes none",
	"removeDevice":   "ends one's own notifications", "testDevice": "sends a test to oneself",
	"setPreference":  "chooses one's own messages",
	"evaluateAction": "adds a result, and decides nothing",
	"comment":        "adds a text, and decides nothing", "assign": "the same people may decide",
	"retryNotification": "sends a message again", "retryFailedNotifications": "sends messages again",
	"testChannel": "sends a test",
}

// deciding has the routes that require the edit token and do not change rights.
var deciding = map[string]string{
	"decide": "decides", "bulkDecide": "decides", "approve": "decides", "reject": "decides",
	"edit": "may decide", "undo": "takes a decision back",
}
