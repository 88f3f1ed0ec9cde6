package card

import (
	"strings"

	"github.com/gatehouse-dev/gatehouse"
	"znkr.io/diff"
)

// walker collects the leaves of a change.
type walker struct {
	shallow      bool   // the values of members are not taken apart
	scope        *scope // the object whose members are compared
	out, context []Change
}

// members compares the members of two objects. Members that the second does not
// name are context. With perKey the members are records, and the same holds within
// each record.
func (w *walker) members(before, after gatehouse.JSON, perKey bool) {
	w.merge(nil, before, after, func(steps []string, x, y gatehouse.JSON) {
		switch {
		case y == "":
			w.keep(steps, x)
		case perKey && x.IsObject() && y == "{}":
			w.keep(steps, x)
			w.whole(steps, NewValue(y), Added)
		case perKey && x.IsObject() && x != "{}" && y.IsObject():
			// One record: fields that its change does not name stay.
			w.merge(steps, x, y, func(steps []string, x, y gatehouse.JSON) {
				if y == "" {
					w.keep(steps, x)
					return
				}
				w.compare(steps, steps, x, y)
			})
		default:
			w.compare(steps, steps, x, y)
		}
	})
}

// enter sets the object whose members are compared. The returned function restores
// the outer object.
func (w *walker) enter(before, after []gatehouse.Member) (leave func()) {
	outer := w.scope
	w.scope = newScope(before, after)
	return func() { w.scope = outer }
}

// merge pairs the members of two objects by name, "" for a missing one.
func (w *walker) merge(at []string, before, after gatehouse.JSON, fn func(steps []string, x, y gatehouse.JSON)) {
	xs, errX := before.Fields()
	ys, errY := after.Fields()
	if errX != nil && before != "" || errY != nil && after != "" {
		// One is not an object: show both whole. Validation refuses such payloads.
		w.leaf(at, at, NewValue(before), NewValue(after))
		return
	}
	defer w.enter(xs, ys)()
	pair(xs, ys, func(name string, x, y gatehouse.JSON) { fn(step(at, name), x, y) })
}

// pair calls fn for each name of two objects' members, with "" for a missing value: first for the names of ys.
func pair(xs, ys []gatehouse.Member, fn func(name string, x, y gatehouse.JSON)) {
	old := make(map[string]gatehouse.JSON, len(xs))
	for _, m := range xs {
		old[m.Name] = m.Value
	}
	for _, m := range ys {
		fn(m.Name, old[m.Name], m.Value)
		delete(old, m.Name)
	}
	for _, m := range xs {
		if x, left := old[m.Name]; left {
			fn(m.Name, x, "")
		}
	}
}

// common compares one change for all records with the pre-image of each record.
func (w *walker) common(a *gatehouse.Action) {
	records, _ := a.CurrentState.Fields()
	members, _ := a.ProposedChange.Fields()
	named := make(map[string]Value, len(members))
	leave := w.enter(nil, members)
	for _, m := range members {
		named[m.Name] = NewValue(m.Value)
		w.whole([]string{m.Name}, named[m.Name], Added)
	}
	leave()
	for _, r := range records {
		fields, err := r.Value.Fields()
		if err != nil || len(fields) == 0 {
			w.keep([]string{r.Name}, r.Value)
			continue
		}
		leave = w.enter(fields, members)
		for _, f := range fields {
			steps := []string{r.Name, f.Name}
			if value, ok := named[f.Name]; ok {
				w.repeat(steps, NewValue(f.Value), value)
				continue
			}
			n := len(w.out)
			w.keep(steps, f.Value)
			for i := range w.out[n:] {
				w.out[n+i].Common = true
			}
		}
		leave()
	}
}

// repeat adds the effect of one common value on one record. The value is not taken
// apart: a large value times many records would be unbounded.
func (w *walker) repeat(steps []string, x, y Value) {
	n := len(w.out)
	w.single(steps, steps, x, y)
	if len(w.out) > n {
		w.out[n].Common = true
	}
}

// removal shows a delete: all fields of the pre-image are removed.
func (w *walker) removal(a *gatehouse.Action) {
	w.merge(nil, a.CurrentState, a.ProposedChange, func(steps []string, x, y gatehouse.JSON) {
		w.compare(steps, steps, x, y)
	})
}

// keep adds values that the change does not name to the context. An amount whose currency the
// change replaces is a change itself, although it keeps its number.
func (w *walker) keep(steps []string, x gatehouse.JSON) {
	inner := walker{shallow: w.shallow, scope: w.scope}
	inner.compare(steps, steps, x, x)
	for _, c := range inner.out {
		if c.Kind == Changed {
			w.out = append(w.out, c)
			continue
		}
		c.Context = true
		w.context = append(w.context, c)
	}
}

// compare takes two values apart, "" for absent. steps is the path of the second
// value, was the path of the first.
func (w *walker) compare(steps, was []string, before, after gatehouse.JSON) {
	x, y := NewValue(before), NewValue(after)
	switch {
	case w.shallow:
		w.single(steps, was, x, y)
	case x.container() && y.container() && x.Type == Object && y.Type == Object:
		w.objects(steps, was, before, after)
	case x.container() && y.container() && x.Type == Array && y.Type == Array:
		w.arrays(steps, was, before, after)
	case x.container() || y.container():
		// Removed parts first, then the added ones. A leaf that replaces an array
		// or object, or is replaced by one, is an added or removed leaf.
		w.whole(was, x, Removed)
		w.whole(steps, y, Added)
	default:
		w.leaf(steps, was, x, y)
	}
}

func (w *walker) objects(steps, was []string, before, after gatehouse.JSON) {
	xs, _ := before.Fields()
	ys, _ := after.Fields()
	defer w.enter(xs, ys)()
	pair(xs, ys, func(name string, x, y gatehouse.JSON) {
		if y == "" {
			w.whole(step(was, name), NewValue(x), Removed)
			return
		}
		w.compare(step(steps, name), step(was, name), x, y)
	})
}

// quickArrays is the total number of elements beyond which the comparison looks for
// a good alignment rather than the best.
const quickArrays = 4000

// arrays aligns two arrays, so that an element inserted in front does not change
// all the others. Removed and added elements at one place are paired.
func (w *walker) arrays(steps, was []string, before, after gatehouse.JSON) {
	xs, _ := before.Elements()
	ys, _ := after.Elements()
	var options []diff.Option
	if len(xs)+len(ys) > quickArrays {
		options = append(options, diff.Fast())
	}
	var gone, come []int
	flush := func() {
		for i := range max(len(gone), len(come)) {
			switch {
			case i >= len(gone):
				w.element(index(steps, come[i]), ys[come[i]], Added)
			case i >= len(come):
				w.element(index(was, gone[i]), xs[gone[i]], Removed)
			default:
				w.compare(index(steps, come[i]), index(was, gone[i]), xs[gone[i]], ys[come[i]])
			}
		}
		gone, come = gone[:0], come[:0]
	}
	for _, e := range diff.Edits(xs, ys, options...) {
		switch e.Op {
		case diff.Delete:
			gone = append(gone, e.PosX)
		case diff.Insert:
			come = append(come, e.PosY)
		default:
			flush()
			w.compare(index(steps, e.PosY), index(was, e.PosX), e.X, e.Y)
		}
	}
	flush()
}

// element takes apart a list element that only one side has.
func (w *walker) element(steps []string, j gatehouse.JSON, kind ChangeKind) {
	n := len(w.out)
	w.whole(steps, NewValue(j), kind)
	for i := range w.out[n:] {
		w.out[n+i].element = len(steps) - 1
	}
}

// whole takes apart a value that only one side has.
func (w *walker) whole(steps []string, v Value, kind ChangeKind) {
	switch {
	case v.Type == Absent:
	case w.shallow && kind == Removed:
		w.single(steps, steps, v, Value{Type: Absent})
	case w.shallow:
		w.single(steps, steps, Value{Type: Absent}, v)
	case v.container() && v.Type == Object:
		members, _ := v.JSON.Fields()
		if len(currenciesIn(members)) > 0 {
			before, after := members, []gatehouse.Member(nil)
			if kind != Removed {
				before, after = after, before
			}
			defer w.enter(before, after)()
		}
		for _, m := range members {
			w.whole(step(steps, m.Name), NewValue(m.Value), kind)
		}
	case v.container():
		elements, _ := v.JSON.Elements()
		for i, e := range elements {
			w.element(index(steps, i), e, kind)
		}
	case kind == Removed:
		w.leaf(steps, steps, v, Value{Type: Absent})
	default:
		w.leaf(steps, steps, Value{Type: Absent}, v)
	}
}

// leaf adds one change, and compares the lines of a long text.
func (w *walker) leaf(steps, was []string, x, y Value) {
	n := len(w.out)
	w.single(steps, was, x, y)
	if len(w.out) > n && (isLong(x) || isLong(y)) && x.textual() && y.textual() {
		t := CompareText(x.Text, y.Text)
		w.out[n].Text = &t
	}
}

// single adds one change of values that are not taken apart.
func (w *walker) single(steps, was []string, x, y Value) {
	c := Change{Steps: steps, Before: x, After: y}
	switch {
	case x.Type == Absent && y.Type == Absent:
		return
	case x.Type == Absent:
		c.Kind = Added
	case y.Type == Absent:
		c.Kind = Removed
	case x.JSON == y.JSON:
		c.Kind = Same
	default:
		c.Kind = Changed
	}
	c.Path = gatehouse.JoinPointer(c.Steps...)
	if len(c.Steps) > 0 {
		c.around = w.scope
		c.CurrencyBefore, c.Currency = w.scope.of(c.Steps[len(c.Steps)-1])
	}
	if _, isNumber := y.Decimal(); isNumber && c.Kind == Same && c.CurrencyChanged() {
		c.Kind = Changed
	}
	if c.Kind == Changed {
		c.Delta = difference(x, y, c.CurrencyBefore, c.Currency)
	}
	if c.Kind == Changed || c.Kind == Same {
		if p := gatehouse.JoinPointer(was...); p != c.Path {
			c.Was = p
		}
	}
	w.out = append(w.out, c)
}

// CurrencyChanged reports whether a field holds money in another currency than before, whatever
// its number.
func (c Change) CurrencyChanged() bool {
	return c.CurrencyBefore != c.Currency && c.CurrencyBefore != "" && c.Currency != ""
}

// longText is the size, in bytes, from which a text is compared by lines.
const longText = 200

func isLong(v Value) bool {
	return v.Type == String && (len(v.Text) >= longText || strings.ContainsRune(v.Text, '\n'))
}

// textual reports whether a value can be one side of a text comparison.
func (v Value) textual() bool { return v.Type == String || v.Type == Absent }
