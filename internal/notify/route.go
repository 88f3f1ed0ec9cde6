package notify

import (
	"path"
	"slices"
	"strings"

	"github.com/gatehouse-dev/gatehouse"
)

// Route selects messages and the channels for them. An empty condition matches all.
type Route struct {
	// Types are patterns of action types, such as price_* .
	Types []string
	// Targets are patterns of entity type and reference, such as item/SKU-* .
	Targets []string
	// Risk is the minimum level.
	Risk gatehouse.RiskLevel
	// Amount is the minimum amount, and Currency its unit; "" for any. An action without an amount
	// does not match.
	Amount   gatehouse.Decimal
	Currency string
	// Groups selects approvals that ask at least one of these groups.
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
	if len(r.Targets) > 0 && !slices.ContainsFunc(r.Targets, func(pattern string) bool {
		return matchesTarget(a, pattern)
	}) {
		return false
	}
	if r.Amount != "" && !r.reachesAmount(a) {
		return false
	}
	return len(r.Groups) == 0 || a.Approval != nil && slices.ContainsFunc(r.Groups, func(group string) bool {
		return slices.Contains(a.Approval.Reached().Groups, group)
	})
}

// flat replaces the slashes of a pattern, or of the text that it is compared with, so that * matches
// slashes too.
var flat = strings.NewReplacer("/", "\x1f")

// matchesTarget reports whether one of an action's targets matches a pattern.
func matchesTarget(a *gatehouse.Action, pattern string) bool {
	return slices.ContainsFunc(append([]string{a.Target.EntityRef}, a.Target.EntityRefs...), func(ref string) bool {
		ok, err := path.Match(flat.Replace(pattern), flat.Replace(a.Target.EntityType+"/"+ref))
		return err == nil && ok && (ref != "" || len(a.Target.EntityRefs) == 0)
	})
}

// reachesAmount reports whether an action has at least the route's amount, as its proposer claims it or as
// the policy's ceilings count it.
func (r *Route) reachesAmount(a *gatehouse.Action) bool {
	reaches := func(amount gatehouse.Decimal, currency string) bool {
		return (r.Currency == "" || r.Currency == currency) && amount.Abs().Cmp(r.Amount) >= 0
	}
	return a.Magnitude != nil && reaches(a.Magnitude.Amount, a.Magnitude.Currency) ||
		slices.ContainsFunc(a.Ceilings, func(c gatehouse.CeilingClaim) bool { return reaches(c.Amount, c.Currency) })
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

// off reports whether a channel was switched off; see [applyFailure].
func (r *routing) off(name string) bool {
	s := r.states[name]
	return s != nil && s.OffAt != nil
}

// fallbackFor returns the first working fallback of a channel on a route; "" for none. A channel that
// already gets the route's messages comes last.
func (r *routing) fallbackFor(route *Route, broken string) string {
	for _, name := range slices.Concat(route.Fallback, route.Channels) {
		if name != broken && r.works(name) {
			return name
		}
	}
	return ""
}

// channelsFor returns the channels for a message, and the channels in besides. A failing channel keeps
// its messages and sends them late; one that is off gets none.
func (r *routing) channelsFor(kind gatehouse.NotificationKind, a *gatehouse.Action, besides ...string) []*Configured {
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
				if next := r.fallbackFor(route, name); next != "" {
					names = append(names, next)
				}
			}
		}
	}
	return r.named(names)
}

// named returns the channels with these names, each once, by name.
func (r *routing) named(names []string) (list []*Configured) {
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		list = append(list, r.channels[name])
	}
	return list
}

// fallbacks are the channels that get the alert about a broken channel: those of the routes that name it or,
// if only something else names it, such as the policy, those of every route.
func (r *routing) fallbacks(broken string) []*Configured {
	of := func(route Route) bool {
		return slices.Contains(route.Channels, broken) || slices.Contains(route.Fallback, broken)
	}
	routed := slices.ContainsFunc(r.routes, of)
	var names []string
	for i := range r.routes {
		route := &r.routes[i]
		if routed && !of(*route) {
			continue
		}
		if next := r.fallbackFor(route, broken); next != "" {
			names = append(names, next)
		}
	}
	return r.named(names)
}
