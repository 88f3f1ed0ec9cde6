package console

import (
	"time"

	"github.com/gatehouse-dev/gatehouse"
)

// RouteInfo is a route for the tests that visit all of them.
type RouteInfo struct {
	Pattern       string
	Roles         []gatehouse.Role
	Public        bool
	ChangesRights bool
}

// Routes lists the routes.
func Routes(c *Console) []RouteInfo {
	var list []RouteInfo
	for _, rt := range c.routes() {
		list = append(list, RouteInfo{rt.pattern, rt.roles, rt.public, rt.changesRights})
	}
	return list
}

// LocalPath exposes localPath.
var LocalPath = localPath

// PersonStreams is the number of streams that one person may have.
const PersonStreams = personStreams

// SetHeartbeat sets the interval at which an idle stream looks for changes.
func (c *Console) SetHeartbeat(d time.Duration) { c.heartbeat = d }

// SetBodyTimeout sets the time limit for a request's body.
func (c *Console) SetBodyTimeout(d time.Duration) { c.bodyTime = d }

// SearchedRows is the number of entries that one page of the audit log searches.
const SearchedRows = searchedRows

// ExportedRows is the number of entries that an export of the audit log can have.
const ExportedRows = exportedRows

// OfEvent counts the kinds of the audit log's filter that include an event type, and reports whether the event
// type has a sentence.
func OfEvent(event string) (kinds int, sentence bool) {
	for _, k := range auditKinds() {
		if k.has(event) {
			kinds++
		}
	}
	_, sentence = auditSentences[event]
	return kinds, sentence
}

// EscapeFormula is a text as the export of the audit log writes it.
func EscapeFormula(text string) string { return escapeFormula(text) }

// BrowserWord is the common name of the browser with a User-Agent header.
func BrowserWord(agent string) string { return browserWord(agent) }
