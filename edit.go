package gatehouse

// Edit is an edit of the proposer's change: by a reviewer before the decision, or by an
// operator after the target refused the content. The proposer stays the same, and the
// action with the proposer's own change is kept.
type Edit struct {
	// ByID is the principal who edited, and Note says why.
	ByID string `json:"by_id"`
	Note string `json:"note"`
	// Of is the last action whose change is the proposer's own.
	Of string `json:"of"`
	// Changes are the fields that differ from the change of Of.
	Changes []EditedField `json:"changes"`
}

// EditedField is one field of a change: Before is the proposer's value, After the edited
// value; "" if the field is absent.
type EditedField struct {
	// Path is the RFC 6901 pointer of the field in the change.
	Path   string `json:"path"`
	Before JSON   `json:"before,omitempty"`
	After  JSON   `json:"after,omitempty"`
}

// EditRequest asks to replace a pending action, or a failed one whose content the target
// refused, by a revision with an edited change.
type EditRequest struct {
	// Digest is the digest that the editor saw, Note the reason for the edit.
	Digest Digest `json:"digest"`
	Note   string `json:"note"`
	// ProposedChange is the whole new change, Patch a JSON merge patch (RFC 7396) of the
	// old one. One of the two is given.
	ProposedChange JSON `json:"proposed_change,omitempty"`
	Patch          JSON `json:"patch,omitempty"`
	// Approve approves the revision in the same transaction: either both are stored, or
	// nothing. Confirm and AcknowledgeStale are as in a Decision.
	Approve          bool   `json:"approve,omitempty"`
	Confirm          string `json:"confirm,omitempty"`
	AcknowledgeStale bool   `json:"acknowledge_stale,omitempty"`
	// DryRun stores nothing: the answer is the revision as it would be, without an id.
	DryRun bool `json:"dry_run,omitempty"`
}

// Validate checks the request without any lookup.
func (e *EditRequest) Validate() error {
	var v Violations
	if e.Digest == "" {
		v.Add("/digest", "is required: the digest of what you saw")
	}
	if e.Note == "" && !e.DryRun {
		v.Add("/note", "is required: the proposer reads why you edited it")
	}
	v.CheckText("/note", e.Note, MaxNotesBytes)
	switch {
	case (e.ProposedChange == "") == (e.Patch == ""):
		v.Add("/proposed_change", "must be given, or patch in its place")
	case e.ProposedChange != "" && !e.ProposedChange.IsObject():
		v.Add("/proposed_change", "must be an object")
	case e.Patch != "" && !e.Patch.IsObject():
		v.Add("/patch", "must be an object")
	}
	return v.Err()
}

// Change returns the new change; old is the action's present change.
func (e *EditRequest) Change(old JSON) JSON {
	if e.Patch == "" {
		return e.ProposedChange
	}
	return MergePatch(old, e.Patch)
}

// MergePatch applies an RFC 7396 merge patch; both must be canonical.
func MergePatch(target, patch JSON) JSON {
	changes, err := patch.Fields()
	if err != nil {
		return patch
	}
	values := make(map[string]JSON)
	old, _ := target.Fields() // a target that is not an object is replaced
	for _, m := range old {
		values[m.Name] = m.Value
	}
	for _, m := range changes {
		if m.Value == "null" {
			delete(values, m.Name)
		} else {
			values[m.Name] = MergePatch(values[m.Name], m.Value)
		}
	}
	members := make([]Member, 0, len(values))
	for name, value := range values {
		members = append(members, Member{name, value})
	}
	return ObjectJSON(members...)
}

// EditorMayApprove reports whether an editor of a change may approve the change, which has
// the risk level level and needs required votes. With one required vote, level must be at
// most upTo; with more, any level is permitted. If upTo is 0, no editor may approve.
func EditorMayApprove(upTo, level RiskLevel, required int) bool {
	return upTo > 0 && (required > 1 || level <= upTo)
}
