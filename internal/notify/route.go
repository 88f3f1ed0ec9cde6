package notify

import (
	"path"
	"slices"

	"github.com/gatehouse-dev/gatehouse"
)

// Route says which messages go over which channels. What is empty matches all.
type Route struct {
	// Types are patterns of action types, such as price_* .
	Types []string
	// Risk is the least level.
	Risk gatehouse.RiskLevel
	// Groups are those whom the approval asks.
	Groups []string
	// Tell are the kinds of messages.
	Tell []gatehouse.NotificationKind
	// Channels take the messages, all of them.
	Channels []string
	// Fallback is tried in its order while a channel of the route is failing.
	Fallback []string
}

// matches reports whether the route takes a message about an action.
func (r *Route) matches(kind gatehouse.NotificationKind, a *gatehouse.Action) bool {
	// Who wants to be asked wants to be asked by a later stage, and reminded.
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

// routing knows the channels of one tenant and how they fare.
type routing struct {
	channels map[string]*Configured
	states   map[string]*gatehouse.ChannelState
	routes   []Route
}

// works reports whether a channel is there and neither failing nor off.
func (r *routing) works(name string) bool {
	if r.channels[name] == nil {
		return false
	}
	s := r.states[name]
	return s == nil || s.FailingSince == nil && s.OffAt == nil
}

// off reports whether the receiver of a channel is gone.
func (r *routing) off(name string) bool {
	s := r.states[name]
	return s != nil && s.OffAt != nil
}

// next is the channel that stands in for another on a route; "" for none. A channel
// of the route that has its messages anyway comes last.
func (r *routing) next(route *Route, broken string) string {
	for _, name := range slices.Concat(route.Fallback, route.Channels) {
		if name != broken && r.works(name) {
			return name
		}
	}
	return ""
}

// over returns the channels that a message takes, those of besides among them. A failing one keeps its messages,
// which are late; one that is off gets none.
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

// standIns are the channels that take the alert about a broken one.
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
