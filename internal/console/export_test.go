package console

import (
	"time"

	"github.com/gatehouse-dev/gatehouse"
)

// RouteInfo is a route as tests walk it.
type RouteInfo struct {
	Pattern string
	Roles   []gatehouse.Role
	Public  bool
	Mints   bool
}

// Routes lists the routes.
func Routes(c *Console) []RouteInfo {
	var list []RouteInfo
	for _, rt := range c.routes() {
		list = append(list, RouteInfo{rt.pattern, rt.roles, rt.public, rt.mints})
	}
	return list
}

// LocalPath is what a path to go back to is made safe with.
var LocalPath = localPath

// PersonStreams is how many streams one person has.
const PersonStreams = personStreams

// SetHeartbeat sets how often a quiet stream looks by itself.
func (c *Console) SetHeartbeat(d time.Duration) { c.heartbeat = d }

// SetBodyTimeout sets how long a body may take.
func (c *Console) SetBodyTimeout(d time.Duration) { c.bodyTime = d }
