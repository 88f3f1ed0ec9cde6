// Package spelling finds names that people read as the same name but programs do not: they
// differ in case, in Unicode compatibility forms, in invisible characters, or in spaces around
// them.
package spelling

import (
	"iter"
	"strconv"
	"strings"
	"unicode"

	"golang.org/x/text/cases"
	"golang.org/x/text/unicode/norm"

	"github.com/gatehouse-dev/gatehouse"
)

// Fold maps all spellings of a name to one form: NFKC and case folding (Unicode 15, sections
// 3.11 and 5.18), without format characters, variation selectors and other characters that have
// no glyph by default (section 5.21), and without white space at the ends.
func Fold(s string) string {
	if plain(s) {
		return strings.TrimSpace(strings.ToLower(s))
	}
	s = strings.Map(func(r rune) rune {
		if unicode.In(r, unicode.Cf, unicode.Variation_Selector, unicode.Other_Default_Ignorable_Code_Point) {
			return -1
		}
		return r
	}, s)
	// Folding needs normalized text, and its result may need to be normalized again.
	s = norm.NFKC.String(s)
	s = norm.NFKC.String(cases.Fold().String(s))
	return strings.TrimSpace(s)
}

func plain(s string) bool {
	for i := range len(s) {
		if s[i] >= 0x80 {
			return false
		}
	}
	return true
}

// Near returns the known name that is another spelling of name; of several, the first in byte order.
// It returns false if there is none, or if name itself is known.
func Near(name string, known iter.Seq[string]) (string, bool) {
	var near string
	found, folded := false, Fold(name)
	for k := range known {
		if k == name {
			return "", false
		}
		if Fold(k) == folded && (!found || k < near) {
			near, found = k, true
		}
	}
	return near, found
}

// CheckKeys refuses a change in which two keys are spellings of one name, with code invalid: a
// target may treat both as one field, and a person may notice only one. The members of a change of
// several targets are rows, not fields, if each is an object with the name of a target.
func CheckKeys(p *gatehouse.Proposal) error {
	var v gatehouse.Violations
	Twins(&v, "/proposed_change", p.ProposedChange, rowsOf(p))
	return v.Err()
}

// rowsOf returns a function that reports whether a member of the change is a row; nil if no member is.
func rowsOf(p *gatehouse.Proposal) func(key string) bool {
	refs := make(map[string]bool, len(p.Target.EntityRefs))
	for _, ref := range p.Target.EntityRefs {
		refs[ref] = true
	}
	members, _ := p.ProposedChange.Fields()
	for _, m := range members {
		if _, err := m.Value.Fields(); err != nil || !refs[m.Name] {
			return nil
		}
	}
	return func(key string) bool { return refs[key] }
}

// maxTwins limits the reported keys.
const maxTwins = 20

// Twins adds a violation for each key, at any depth of a JSON value, that is another spelling of
// a key in the same object. at is the value's JSON pointer. At the top level of the value, keys for
// which distinct returns true are not compared, because they name different objects, such as rows;
// a nil distinct leaves out none.
func Twins(v *gatehouse.Violations, at string, value gatehouse.JSON, distinct func(key string) bool) {
	if members, err := value.Fields(); err == nil {
		seen := make(map[string]string, len(members))
		for _, m := range members {
			if len(*v) >= maxTwins {
				return
			}
			here := at + gatehouse.JoinPointer(m.Name)
			if distinct == nil || !distinct(m.Name) {
				folded := Fold(m.Name)
				if other, ok := seen[folded]; ok {
					v.Add(here, "is another spelling of %s in the same object; a change can name a field only once",
						gatehouse.Quote(other))
				} else {
					seen[folded] = m.Name
				}
			}
			Twins(v, here, m.Value, nil)
		}
		return
	}
	if elements, err := value.Elements(); err == nil {
		for i, e := range elements {
			Twins(v, at+"/"+strconv.Itoa(i), e, nil)
		}
	}
}
