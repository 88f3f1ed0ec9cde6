package shared

import "github.com/gatehouse-dev/gatehouse"

// EncodeAbout encodes what an approval asks about as canonical JSON; "" for none.
func EncodeAbout(a *gatehouse.About) string {
	if a == nil {
		return ""
	}
	return string(gatehouse.MustJSON(a))
}

// AboutEntity returns the beginning of EncodeAbout's text for an entity, and AboutVersion the part of that text
// that holds the version. Quotes within a value are escaped, so neither occurs in the text of another entity or
// version.
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
