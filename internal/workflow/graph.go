package workflow

import "github.com/gatehouse-dev/gatehouse"

// Ready returns the blocked steps whose needs have all succeeded, in file
// order. state returns the state of a step.
func (d *Definition) Ready(state func(id string) gatehouse.StepStatus) []string {
	var ready []string
	for _, s := range d.Steps {
		if state(s.ID) == gatehouse.StepBlocked && s.free(state) {
			ready = append(ready, s.ID)
		}
	}
	return ready
}

func (s *Step) free(state func(id string) gatehouse.StepStatus) bool {
	for _, need := range s.Needs {
		if state(need) != gatehouse.StepSucceeded {
			return false
		}
	}
	return true
}

// Needs maps each step's id to the ids that it needs.
func (d *Definition) Needs() map[string][]string {
	m := make(map[string][]string, len(d.Steps))
	for _, s := range d.Steps {
		m[s.ID] = s.Needs
	}
	return m
}

// Layers arranges the steps in rows: each step is below all steps that it
// needs.
func (d *Definition) Layers() [][]*Step {
	depth := make(map[string]int, len(d.Steps))
	var of func(s *Step) int
	of = func(s *Step) int {
		if n, ok := depth[s.ID]; ok {
			return n
		}
		n := 0
		for _, need := range s.Needs {
			n = max(n, of(d.byID[need])+1)
		}
		depth[s.ID] = n
		return n
	}
	var layers [][]*Step
	for _, s := range d.Steps {
		n := of(s)
		for len(layers) <= n {
			layers = append(layers, nil)
		}
		layers[n] = append(layers[n], s)
	}
	return layers
}

// upstream returns, for each id, all ids that it needs, directly or indirectly.
// If there is a cycle, it is returned as a list of ids.
func upstream(ids []string, needs map[string][]string) (all map[string]map[string]bool, cycle []string) {
	all = make(map[string]map[string]bool, len(ids))
	const open, done = 1, 2
	mark := make(map[string]int, len(ids))
	var path []string
	var visit func(id string)
	visit = func(id string) {
		mark[id] = open
		path = append(path, id)
		up := make(map[string]bool)
		for _, need := range needs[id] {
			if mark[need] == open {
				if cycle == nil {
					for i, p := range path {
						if p == need {
							cycle = append(append([]string{}, path[i:]...), need)
							break
						}
					}
				}
				continue
			}
			if mark[need] == 0 {
				visit(need)
			}
			up[need] = true
			for far := range all[need] {
				up[far] = true
			}
		}
		path = path[:len(path)-1]
		mark[id] = done
		all[id] = up
	}
	for _, id := range ids {
		if mark[id] == 0 {
			visit(id)
		}
	}
	return all, cycle
}
