package console

import (
	"maps"
	"slices"
)

// iconPaths are the console's icons, one SVG path each.
var iconPaths = map[string]string{
	"inbox":     "M3 11l2.5-7h9L17 11v5H3zM3 11h4l1.2 2h3.6L13 11h4",
	"runs":      "M4 5h7M4 10h12M4 15h9M15 3.5v3M17 13.5v3",
	"workflows": "M3 3h5v4H3zM12 13h5v4h-5zM5.5 7v5.5a2.5 2.5 0 0 0 2.5 2.5h4",
	"dispatch":  "M3 9.5L17 3l-4.5 14-3-6zM9.500 11L17 3",
	"policies": "M10 2.500l6.500 2.500v4.500c0 4-2.700 6.700-6.500 8-3.800-1.300-6.500-4-6.500-8V5zM7 10l2.200 " +
		"2.200L13.200 8",
	"audit":    "M5 2.500h7l3.500 3.500v11.500H5zM12 2.500V6h3.500M7.500 10h5M7.500 13.500h5",
	"insights": "M3 17h14M5.500 17v-5M10 17V5M14.500 17V9",
	"settings": "M3 6h8M15 6h2M13 4v4M3 14h2M9 14h8M7 12v4",
	"search":   "M9 3.500a5.500 5.500 0 1 1 0 11 5.500 5.500 0 0 1 0-11zM13 13l4 4",
	"more":     "M4 10h.01M10 10h.01M16 10h.01",
}

// inBottomBar are the sections that the phone's bottom bar shows directly.
var inBottomBar = []string{"/inbox", "/runs"}

func (item navItem) bottom() bool { return slices.Contains(inBottomBar, item.Path) }

// belowMore reports whether the page belongs to a section under More in the bottom bar.
func (v *view) belowMore() bool { return v.section != "" && !slices.Contains(inBottomBar, v.section) }

func iconNames() []string { return slices.Sorted(maps.Keys(iconPaths)) }
