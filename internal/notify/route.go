package notify

import (
	"path"
	"slices"

	"github.com/gatehouse-dev/gatehouse"
)

// Route selects messages and the channels for them. An empty condition matches all.
type Route struct {
	// Types are patterns of action types, such as price_* .
	Types []string
	// Risk is the minimum level.
	Risk gatehouse.RiskLevel
	// Groups are groups of which the approval must ask one.
	Groups []string
	// Tell are the kinds of messages.
	Tell []gatehouse.NotificationKind
	// Channels all get the selected messages.
	Channels []string
	// Fallback lists the channels that are tried in order while a channel of the route is failing.
	Fallback []string
}

// matches reports whether the route selects a message about an action.
func (r *Route) matches(kind gatehouse.NotificationKind, a *gatehouse.Action) bool {
	// A route for questions also covers those of later stages, and reminders.
	if len(r.Tell) > 0 && !slices.Contains(r.Tell, kind) &&
		(!kind.Asks() || !slices.Contains(r.Tell, gatehouse.NotifyAsked)) {
		return false
	}
	if a.RiskLevel < r.Risk {
		return false
	}
	if len(r.Types) > 0 && !slices.ContainsFunc(r.Types, func(pattern string) bool {
		ok, err := path.Match(pattern, a.ActionType)
		return err == nil && ok
	}) {
		return false
	}
	return len(r.Groups) == 0 || a.Approval != nil && slices.ContainsFunc(r.Groups, func(group string) bool {
		return slices.Contains(a.Approval.Reached().Groups, group)
	})
}

// routing holds the channels of one tenant, with their states.
type routing struct {
	channels map[string]*Configured
	states   map[string]*gatehouse.ChannelState
	routes   []Route
}

// works reports whether a channel exists and is neither failing nor off.
func (r *routing) works(name string) bool {
	if r.channels[name] == nil {
		return false
	}
	s := r.states[name]
	return s == nil || s.FailingSince == nil && s.OffAt == nil
}

// off reports whether a channel was switched off because its receiver wants no more messages.
func (r *routing) off(name string) bool {
	s := r.states[name]
	return s != nil && s.OffAt != nil
}

// next is the stand-in for a channel on a route; "" for none. A channel that already gets the
// route's messages comes last.
func (r *routing) next(route *Route, broken string) string {
	for _, name := range slices.Concat(route.Fallback, route.Channels) {
		if name != broken && r.works(name) {
			return name
		}
	}
	return ""
}

// over returns the channels for a message, including besides. A failing channel keeps its messages
// and sends them late; one that is off gets none.
func (r *routing) over(kind gatehouse.NotificationKind, a *gatehouse.Action, besides ...string) []*Configured {
	var names []string
	for _, name := range besides {
		if r.channels[name] != nil && !r.off(name) {
			names = append(names, name)
		}
	}
	for i := range r.routes {
		route := &r.routes[i]
		if !route.matches(kind, a) {
			continue
		}
		for _, name := range route.Channels {
			if r.channels[name] == nil {
				continue
			}
			if !r.off(name) {
				names = append(names, name)
			}
			if !r.works(name) {
				if next := r.next(route, name); next != "" {
					names = append(names, next)
				}
			}
		}
	}
	slices.Sort(names)
	var list []*Configured
	for _, name := range slices.Compact(names) {
		list = append(list, r.channels[name])
	}
	return list
}

// standIns are the channels that get the alert about a broken one.
func (r *routing) standIns(broken string) []*Configured {
	var names []string
	for i := range r.routes {
		route := &r.routes[i]
		if !gatehouse.IsCallbackChannel(broken) && !slices.Contains(route.Channels, broken) &&
			!slices.Contains(route.Fallback, broken) {
			continue
		}
		if next := r.next(route, broken); next != "" {
			names = append(names, next)
		}
	}
	slices.Sort(names)
	var list []*Configured
	for _, name := range slices.Compact(names) {
		list = append(list, r.channels[name])
	}
	return list
}
