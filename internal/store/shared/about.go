package shared

import "github.com/gatehouse-dev/gatehouse"

// EncodeAbout encodes what an approval asks about as canonical JSON; "" for none.
func EncodeAbout(a *gatehouse.About) string {
	if a == nil {
		return ""
	}
	return string(gatehouse.MustJSON(a))
}

// AboutEntity and AboutVersion return what a query searches for in stored text of EncodeAbout: the text begins with
// AboutEntity if it is about this entity, and contains AboutVersion if it has this version. Quotes within values are
// escaped, so there are no false matches.
func AboutEntity(c *gatehouse.TargetChange) string {
	entity := gatehouse.ObjectJSON(
		gatehouse.Member{Name: "connector", Value: gatehouse.StringJSON(c.Connector)},
		gatehouse.Member{Name: "entity_ref", Value: gatehouse.StringJSON(c.EntityRef)},
		gatehouse.Member{Name: "entity_type", Value: gatehouse.StringJSON(c.EntityType)},
	)
	return string(entity[:len(entity)-1]) + ","
}

// AboutVersion is described at AboutEntity.
func AboutVersion(c *gatehouse.TargetChange) string {
	return `"version":` + string(gatehouse.StringJSON(c.Version)) + "}"
}
