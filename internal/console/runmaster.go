package console

import (
	"slices"
	"strings"

	"github.com/gatehouse-dev/gatehouse"
)

// stepLinks maps the ids of steps in a workflow to the links to their details. A repeated step links to
// its last iteration.
func stepLinks(steps []*gatehouse.Step) map[string]string {
	links := make(map[string]string)
	for _, s := range steps {
		if id, _ := s.Iteration(); s.Parent == "" {
			links[id] = "#s-" + s.ID
		}
	}
	return links
}

// linkSteps makes each node of a graph a link to its step. For screen readers, the graph is then a
// group of links instead of an image.
func linkSteps(nodes []drawnNode, links map[string]string) {
	for i := range nodes {
		n := &nodes[i]
		if n.name == "svg" {
			for j := range n.attr {
				if n.attr[j][0] == "role" {
					n.attr[j][1] = "group"
				}
			}
		}
		if href := links[stepOfNode(*n)]; href != "" {
			*n = drawnNode{name: "a", attr: [][2]string{{"href", href}}, children: []drawnNode{*n}}
			continue
		}
		linkSteps(n.children, links)
	}
}

// stepOfNode is the id of the step that a node of a graph draws, "" for none. The node's title begins
// with the id.
func stepOfNode(n drawnNode) string {
	box := slices.ContainsFunc(n.attr, func(a [2]string) bool {
		return a[0] == "class" && strings.HasPrefix(a[1], "wf-step ")
	})
	if !box || len(n.children) == 0 || n.children[0].name != "title" || len(n.children[0].children) == 0 {
		return ""
	}
	id, _, _ := strings.Cut(n.children[0].children[0].text, ": ")
	return id
}

// chosenStep is the id of the step that people look for first: failed steps, then steps that wait
// for people, then steps in progress, then the last step that succeeded.
func chosenStep(steps []*gatehouse.Step) (id string) {
	best := -1
	for _, s := range steps {
		weight := 0
		switch s.Status {
		case gatehouse.StepFailed:
			weight = 4
		case gatehouse.StepWaitingApproval:
			weight = 3
		case gatehouse.StepRunning, gatehouse.StepRetrying, gatehouse.StepWaiting, gatehouse.StepReady:
			weight = 2
		case gatehouse.StepSucceeded:
			weight = 1
		}
		if weight > best || weight == best && weight == 1 {
			best, id = weight, s.ID
		}
	}
	return id
}
