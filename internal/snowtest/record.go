package snowtest

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// field is a column of a table.
type field struct {
	// refers names the table that a reference points to.
	refers string
	// choices maps values to labels.
	choices map[string]string
	// journal is the label in the display value of a journal field; "" for other fields.
	journal string
	// fixed columns cannot be written.
	fixed bool
}

type table struct {
	fields  map[string]field
	records map[string]*record
	order   []string // sys_ids, in order of insertion
}

type record struct {
	values  map[string]string
	journal map[string][]Entry
}

// Entry is one entry of a journal field.
type Entry struct{ At, By, Text string }

var (
	levels       = map[string]string{"1": "1 - High", "2": "2 - Medium", "3": "3 - Low"}
	systemFields = map[string]field{
		"sys_id": {fixed: true}, "sys_mod_count": {fixed: true}, "sys_class_name": {fixed: true},
		"sys_created_on": {fixed: true}, "sys_created_by": {fixed: true},
		"sys_updated_on": {fixed: true}, "sys_updated_by": {fixed: true},
	}
	incidentFields = with(systemFields, map[string]field{
		"number": {}, "short_description": {}, "description": {}, "subcategory": {}, "contact_type": {},
		"close_code": {}, "close_notes": {}, "correlation_id": {}, "correlation_display": {}, "opened_at": {}, "active": {},
		"category": {
			choices: map[string]string{"inquiry": "Inquiry / Help", "software": "Software", "hardware": "Hardware",
				"network": "Network", "database": "Database"}},
		"state": {choices: map[string]string{"1": "New", "2": "In Progress", "3": "On Hold", "6": "Resolved", "7": "Closed",
			"8": "Canceled"}},
		"impact":  {choices: levels},
		"urgency": {choices: levels},
		// Looked up from impact and urgency, whatever is sent.
		"priority": {fixed: true,
			choices: map[string]string{"1": "1 - Critical", "2": "2 - High", "3": "3 - Moderate", "4": "4 - Low",
				"5": "5 - Planning"}},
		"caller_id": {refers: "sys_user"}, "opened_by": {refers: "sys_user"}, "assigned_to": {refers: "sys_user"},
		"assignment_group": {refers: "sys_user_group"},
		"work_notes":       {journal: "Work notes"}, "comments": {journal: "Additional comments"},
	})
	changeFields = with(systemFields, map[string]field{
		"number": {}, "short_description": {}, "state": {}, "risk": {}, "correlation_id": {},
		"assignment_group": {refers: "sys_user_group"}, "assigned_to": {refers: "sys_user"},
	})
	labelFields      = with(systemFields, map[string]field{"name": {}})
	labelEntryFields = with(systemFields, map[string]field{
		"label": {refers: "label"}, "table": {}, "table_key": {}, "title": {},
	})
	journalEntryFields = with(systemFields, map[string]field{"name": {}, "element_id": {}, "element": {}, "value": {}})
	userFields         = with(systemFields, map[string]field{"user_name": {}, "name": {}})
	groupFields        = with(systemFields, map[string]field{"name": {}})
)

func with(a, b map[string]field) map[string]field {
	all := maps.Clone(a)
	maps.Copy(all, b)
	return all
}

// AddUser adds a user to refer to, and returns its sys_id.
func (s *Server) AddUser(userName, name string) string {
	return s.add("sys_user", map[string]string{"user_name": userName, "name": name})
}

// AddGroup adds a group to assign to, and returns its sys_id.
func (s *Server) AddGroup(name string) string {
	return s.add("sys_user_group", map[string]string{"name": name})
}

// AddLabel adds a label that records can have, and returns its sys_id.
func (s *Server) AddLabel(name string) string { return s.add("label", map[string]string{"name": name}) }

// Labels returns the names of the labels that a record has.
func (s *Server) Labels(sysID string) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	names := []string{}
	for _, id := range s.tables["label_entry"].order {
		if e := s.tables["label_entry"].records[id]; e.values["table_key"] == sysID {
			names = append(names, s.tables["label"].records[e.values["label"]].values["name"])
		}
	}
	return names
}

// AddIncident adds an incident as ServiceNow's user "system" would, outside of the ledger, and returns
// its sys_id. It panics for an unknown field.
func (s *Server) AddIncident(fields map[string]string) string { return s.add("incident", fields) }

// Touch changes an incident as the user "system", outside of the ledger.
func (s *Server) Touch(sysID string, fields map[string]string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.tables["incident"]
	s.update(t, t.records[sysID], fields, "system")
}

// Incident returns an incident's values, journals aside; nil for none.
func (s *Server) Incident(sysID string) map[string]string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r := s.tables["incident"].records[sysID]; r != nil {
		return maps.Clone(r.values)
	}
	return nil
}

// Journal returns the entries of work_notes or comments, oldest first.
func (s *Server) Journal(sysID, name string) []Entry {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r := s.tables["incident"].records[sysID]; r != nil {
		return slices.Clone(r.journal[name])
	}
	return nil
}

func (s *Server) add(name string, fields map[string]string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	for f := range fields {
		if _, ok := s.tables[name].fields[f]; !ok {
			panic("snowtest: " + name + " has no field " + f)
		}
	}
	return s.insert(name, fields, "system").values["sys_id"]
}

// insert creates a record with the system's own fields.
func (s *Server) insert(name string, fields map[string]string, user string) *record {
	t := s.tables[name]
	r := &record{values: map[string]string{}, journal: map[string][]Entry{}}
	id, now := s.newID(name), s.now()
	if name == "incident" {
		maps.Copy(r.values, map[string]string{
			"number": fmt.Sprintf("INC%07d", 10000+len(t.records)+1), "state": "1", "impact": "3", "urgency": "3",
			"active":    "true",
			"opened_at": now, "category": "inquiry",
		})
	}
	r.values["sys_id"] = id
	s.update(t, r, fields, user)
	maps.Copy(r.values, map[string]string{
		"sys_id": id, "sys_mod_count": "0", "sys_class_name": name,
		"sys_created_on": now, "sys_created_by": user, "sys_updated_on": now, "sys_updated_by": user,
	})
	t.records[id] = r
	t.order = append(t.order, id)
	return r
}

// update changes the fields that may be changed, and returns their names, in order. It ignores
// unknown fields and the system's own fields.
func (s *Server) update(t *table, r *record, fields map[string]string, user string) (changed []string) {
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		f, ok := t.fields[name]
		value := fields[name]
		switch {
		case !ok || f.fixed:
		case f.journal != "":
			if value != "" {
				r.journal[name] = append(r.journal[name], Entry{At: s.now(), By: user, Text: value})
				s.insert("sys_journal_field", map[string]string{
					"name": "incident", "element_id": r.values["sys_id"], "element": name, "value": value,
				}, user)
				changed = append(changed, name)
			}
		case r.values[name] != value:
			r.values[name] = value
			changed = append(changed, name)
		}
	}
	if _, ok := t.fields["priority"]; ok {
		r.values["priority"] = priority(r.values["impact"], r.values["urgency"])
		if state := r.values["state"]; state == "7" || state == "8" {
			r.values["active"] = "false"
		}
	}
	if len(changed) > 0 {
		var n int
		_, _ = fmt.Sscan(r.values["sys_mod_count"], &n)
		r.values["sys_mod_count"] = fmt.Sprint(n + 1)
		r.values["sys_updated_on"], r.values["sys_updated_by"] = s.now(), user
	}
	return changed
}

// priority looks up a priority as an instance with the default settings does.
func priority(impact, urgency string) string {
	switch impact + urgency {
	case "11":
		return "1"
	case "12", "21":
		return "2"
	case "13", "22", "31":
		return "3"
	case "23", "32":
		return "4"
	}
	return "5"
}

// display is the display value of a field.
func (s *Server) display(r *record, name string, f field) string {
	value := r.values[name]
	switch {
	case f.journal != "":
		var b strings.Builder
		for _, e := range slices.Backward(r.journal[name]) {
			fmt.Fprintf(&b, "%s - %s (%s)\n%s\n\n", e.At, e.By, f.journal, e.Text)
		}
		return b.String()
	case f.refers != "":
		if to := s.tables[f.refers].records[value]; to != nil {
			return to.values["name"]
		}
	case f.choices != nil:
		if label, ok := f.choices[value]; ok {
			return label
		}
	}
	return value
}

// actual is the stored value for a display value: the key for a choice's label,
// the sys_id for a reference's name.
func (s *Server) actual(f field, shown string) (string, bool) {
	if shown == "" {
		return "", true
	}
	for value, label := range f.choices {
		if label == shown || value == shown {
			return value, true
		}
	}
	if f.refers == "" {
		return shown, f.choices == nil
	}
	t := s.tables[f.refers]
	for _, id := range t.order {
		if r := t.records[id]; r.values["name"] == shown || r.values["user_name"] == shown || id == shown {
			return id, true
		}
	}
	return "", false
}
