package gatehouse

import (
	"crypto/sha256"
	"encoding/hex"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"
)

// The types of callbacks.
const (
	CallbackWebhook       = "webhook"
	CallbackNATS          = "nats"
	CallbackStepFunctions = "step_functions"
)

// The moments at which a Step Functions task is answered.
const (
	CallbackOnDecided  = "decided"
	CallbackOnFinished = "finished"
)

// The bounds of a callback: the lengths of its texts in bytes, and the least HeartbeatSeconds of a
// Step Functions state.
const (
	MaxCallbackURL = 2048
	MaxSubject     = 255
	MaxTaskToken   = 2048
	MinHeartbeat   = 10 * time.Second
)

// Callback describes how the proposer is notified of its action's outcome. A webhook and NATS get one
// message when the action is decided, and one when it is finished. A Step Functions task is
// answered once; see On.
type Callback struct {
	// Type is webhook, nats or step_functions.
	Type string `json:"type"`
	// URL is where the requests of a webhook go.
	URL string `json:"url,omitempty"`
	// Subject is the NATS subject of the messages.
	Subject string `json:"subject,omitempty"`
	// TaskToken is the token of a waiting Step Functions task. It is sealed before it
	// is stored, and no answer contains it.
	TaskToken string `json:"task_token,omitempty"`
	// TaskTokenHash is "sha256:" and the hash of the task token in hexadecimal, set by the server.
	TaskTokenHash string `json:"task_token_hash,omitempty"`
	// ExecutionARN names the execution that waits, "" for none. When the answer of AWS to
	// Gatehouse is lost, the execution's history shows whether the task was answered.
	ExecutionARN string `json:"execution_arn,omitempty"`
	// On is when the task is answered: decided (the default) or finished.
	On string `json:"on,omitempty"`
	// Heartbeat is the HeartbeatSeconds of the state that waits; 0 for none.
	Heartbeat Span `json:"heartbeat,omitempty"`
	// Sealed is the sealed task token, as stored; "" for none, and in the archive.
	Sealed string `json:"-"`
}

var (
	subjectForm   = regexp.MustCompile(`^[!-)+-=?-~]+$`) // printable ASCII without space, * and >
	executionForm = regexp.MustCompile(`^arn:aws[a-z-]*:states:[a-z0-9-]+:[0-9]{12}:execution:[!-~]+:[!-~]+$`)
)

// ValidSubject reports whether a text is a NATS subject without wildcards.
func ValidSubject(s string) bool {
	return len(s) <= MaxSubject && subjectForm.MatchString(s) && !slices.Contains(strings.Split(s, "."), "")
}

func (c *Callback) validate(v *Violations) {
	if c == nil {
		return
	}
	members := []struct {
		name, kind, value string
		limit             int
	}{
		{"url", CallbackWebhook, c.URL, MaxCallbackURL},
		{"subject", CallbackNATS, c.Subject, MaxSubject},
		{"task_token", CallbackStepFunctions, c.TaskToken + c.Sealed, 2 * MaxTaskToken},
		{"execution_arn", CallbackStepFunctions, c.ExecutionARN, MaxCallbackURL},
		{"on", CallbackStepFunctions, c.On, MaxCallbackURL},
	}
	if !slices.Contains([]string{CallbackWebhook, CallbackNATS, CallbackStepFunctions}, c.Type) {
		v.Add("/callback/type", "must be webhook, nats or step_functions")
		return
	}
	for _, m := range members {
		optional := m.name == "execution_arn" || m.name == "on"
		switch {
		case m.kind == c.Type && m.value == "" && !optional:
			v.Add("/callback/"+m.name, "is required")
		case m.kind != c.Type && m.value != "":
			v.Add("/callback/"+m.name, "is not allowed for a callback of type %s", c.Type)
		default:
			checkText(v, "/callback/"+m.name, m.value, m.limit)
		}
	}
	if len(c.TaskToken) > MaxTaskToken {
		v.Add("/callback/task_token", "is longer than %d bytes", MaxTaskToken)
	}
	if c.URL != "" {
		if u, err := url.Parse(c.URL); err != nil || u.Hostname() == "" || u.Scheme != "https" && u.Scheme != "http" ||
			u.User != nil || u.Fragment != "" {
			v.Add("/callback/url", "must be an http or https URL without user information or fragment")
		}
	}
	if c.Subject != "" && !ValidSubject(c.Subject) {
		v.Add("/callback/subject", "must be a NATS subject without wildcards")
	}
	if c.TaskTokenHash != "" && c.Sealed == "" {
		v.Add("/callback/task_token_hash", "is set by the server")
	}
	if c.ExecutionARN != "" && !executionForm.MatchString(c.ExecutionARN) {
		v.Add("/callback/execution_arn", "must be the ARN of a Step Functions execution")
	}
	if c.On != "" && c.On != CallbackOnDecided && c.On != CallbackOnFinished {
		v.Add("/callback/on", "must be decided or finished")
	}
	switch {
	case c.Heartbeat != 0 && c.Type != CallbackStepFunctions:
		v.Add("/callback/heartbeat", "is not allowed for a callback of type %s", c.Type)
	case c.Heartbeat != 0 && (c.Heartbeat.D() < MinHeartbeat || c.Heartbeat.D() > MaxExpiry):
		v.Add("/callback/heartbeat", "must be 10s to 365d")
	}
}

// HashTaskToken returns the hash that replaces a task token in answers.
func HashTaskToken(token string) string {
	sum := sha256.Sum256([]byte(token))
	return "sha256:" + hex.EncodeToString(sum[:])
}

// TaskHash is the SHA-256 of the task token, nil where the callback has none.
func (c *Callback) TaskHash() []byte {
	if c == nil {
		return nil
	}
	sum, err := hex.DecodeString(strings.TrimPrefix(c.TaskTokenHash, "sha256:"))
	if err != nil || len(sum) != sha256.Size {
		return nil
	}
	return sum
}

// FailureWorkflowGone is the failure code of a canceled action: the Step Functions task that
// waited for its callback no longer exists.
const FailureWorkflowGone = "workflow_gone"

// callbackPrefix begins the names of the channels that make callbacks.
const callbackPrefix = "callback."

// CallbackChannel names the channel that makes the callbacks of a type. No configured
// channel has such a name.
func CallbackChannel(kind string) string { return callbackPrefix + kind }

// IsCallbackChannel reports whether a channel makes callbacks.
func IsCallbackChannel(name string) bool { return strings.HasPrefix(name, callbackPrefix) }
