package gatehouse

// About names an entity in a target system, and its state: the subject of an approval
// step of a workflow. It is frozen with the approval.
type About struct {
	// Connector, EntityType and EntityRef name the entity as proposals do.
	Connector  string `json:"connector"`
	EntityType string `json:"entity_type"`
	EntityRef  string `json:"entity_ref"`
	// Operation is the connector's operation whose check reads the entity; "" when
	// nothing reads it.
	Operation string `json:"operation,omitempty"`
	// Version is the entity's version that the step saw, "" for none. The state that
	// it saw is the action's current_state.
	Version string `json:"version,omitempty"`
	// StateDigest is the digest of entity, version and state: see [About.Seal].
	StateDigest Digest `json:"state_digest"`
}

// Validate returns an [Error] with code invalid. state is the action's current_state.
func (a *About) Validate(state JSON) error {
	t := TargetChange{Connector: a.Connector, EntityType: a.EntityType, EntityRef: a.EntityRef, Version: a.Version}
	if err := t.Validate(); err != nil {
		return err
	}
	var v Violations
	if a.Operation != "" && !ValidName(a.Operation) {
		v.Add("/operation", "must be the name of an operation")
	}
	if a.Version == "" && state == "" {
		v.Add("/version", "is required without a current_state: the approval needs one of them")
	}
	return v.Err()
}

// Seal returns a copy with the digest of the state. The digest is the SHA-256 of the
// canonical form of {"v":1,"connector","entity_type","entity_ref","version",
// "current_state"}, where an absent version is "" and an absent state null.
func (a About) Seal(state JSON) *About {
	if state == "" {
		state = "null"
	}
	a.StateDigest = NewDigest(ObjectJSON(
		Member{"connector", StringJSON(a.Connector)},
		Member{"current_state", state},
		Member{"entity_ref", StringJSON(a.EntityRef)},
		Member{"entity_type", StringJSON(a.EntityType)},
		Member{"v", "1"},
		Member{"version", StringJSON(a.Version)},
	))
	return &a
}

// AskedTarget returns the connector and the target that the question is about: those of
// the approval step's About, else the action's own.
func (a *Action) AskedTarget() (connector string, t Target) {
	if a.Approval == nil || a.Approval.About == nil {
		return a.Connector, a.Target
	}
	about := a.Approval.About
	return about.Connector, Target{EntityType: about.EntityType, EntityRef: about.EntityRef, Version: about.Version}
}
