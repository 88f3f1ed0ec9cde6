package policy

import (
	"fmt"
	"regexp"
	"strings"
	"time"
	_ "time/tzdata" // for a machine that has no zones installed

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"go.yaml.in/yaml/v4"

	"github.com/gatehouse-dev/gatehouse"
)

// maxHolidays bounds the list of holidays: about fifty years.
const maxHolidays = 1000

// calendar holds the holidays of a policy and the time zones that its expressions name, for the
// functions of proposed_at. The zones are loaded when the policy is parsed: an evaluation reads
// neither a clock nor a file.
type calendar struct {
	zones    map[string]*time.Location
	holidays map[string]bool // as 2026-12-25
	// usesTime is true if an expression uses proposed_at.
	usesTime bool
}

// calendarFunctions lists the functions of proposed_at. Each takes the name of an
// IANA time zone, which must be a literal.
var calendarFunctions = map[string]struct {
	result *cel.Type
	run    func(c *calendar, t time.Time) ref.Val
}{
	"weekday": {cel.StringType,
		func(_ *calendar, t time.Time) ref.Val { return types.String(strings.ToLower(t.Weekday().String())) }},
	"hour":    {cel.IntType, func(_ *calendar, t time.Time) ref.Val { return types.Int(t.Hour()) }},
	"date":    {cel.StringType, func(_ *calendar, t time.Time) ref.Val { return types.String(t.Format(time.DateOnly)) }},
	"holiday": {cel.BoolType, func(c *calendar, t time.Time) ref.Val { return types.Bool(c.holiday(t)) }},
	"workday": {cel.BoolType, func(c *calendar, t time.Time) ref.Val { return types.Bool(c.workday(t)) }},
}

func (c *calendar) holiday(t time.Time) bool { return c.holidays[t.Format(time.DateOnly)] }

func (c *calendar) workday(t time.Time) bool {
	return t.Weekday() != time.Saturday && t.Weekday() != time.Sunday && !c.holiday(t)
}

// functions declares the functions for CEL.
func (c *calendar) functions() []cel.EnvOption {
	options := make([]cel.EnvOption, 0, len(calendarFunctions))
	for name, f := range calendarFunctions {
		run := func(at, zone ref.Val) ref.Val {
			t, ok := at.(types.Timestamp)
			where := c.zones[fmt.Sprint(zone.Value())]
			if !ok || where == nil {
				return types.NewErr("no time zone %s", gatehouse.Quote(fmt.Sprint(zone.Value())))
			}
			return f.run(c, t.In(where))
		}
		options = append(options, cel.Function(name, cel.MemberOverload("timestamp_"+name,
			[]*cel.Type{cel.TimestampType, cel.StringType}, f.result, cel.BinaryBinding(run))))
	}
	return options
}

// celTimeFunction returns the name of the function that an expression calls. ok is true if the function is one of
// CEL's own functions of a time (getHours and the like), which would load a time zone while a proposal is judged.
func celTimeFunction(e ast.Expr) (name string, ok bool) {
	if e.Kind() != ast.CallKind {
		return "", false
	}
	call := e.AsCall()
	return call.FunctionName(), strings.HasPrefix(call.FunctionName(), "get") && call.IsMemberFunction()
}

// check loads the zones that an expression names, and refuses CEL's own functions of a time.
func (c *calendar) check(e ast.Expr, fail func(at ast.Expr, format string, args ...any)) {
	if isFact(e, "proposed_at") {
		c.usesTime = true
	}
	if e.Kind() != ast.CallKind {
		return
	}
	if name, ok := celTimeFunction(e); ok {
		fail(e, "%s is not supported; write weekday, hour, date, holiday or workday, with a zone", name)
		return
	}
	call := e.AsCall()
	if _, known := calendarFunctions[call.FunctionName()]; !known || !call.IsMemberFunction() || len(call.Args()) != 1 {
		return
	}
	zone, ok := literal(call.Args()[0])
	if !ok {
		fail(e, "the time zone must be written out, as %s(\"Europe/Berlin\")", call.FunctionName())
		return
	}
	where, err := time.LoadLocation(zone)
	if err != nil || zone == "" || zone == "Local" {
		fail(e, "there is no time zone %s; use a name such as Europe/Berlin or UTC", gatehouse.Quote(zone))
		return
	}
	c.zones[zone] = where
}

func literal(e ast.Expr) (string, bool) {
	if e.Kind() != ast.LiteralKind {
		return "", false
	}
	s, ok := e.AsLiteral().(types.String)
	return string(s), ok
}

var dateForm = regexp.MustCompile(`^[0-9]{4}-[0-9]{2}-[0-9]{2}$`)

// holidays reads the list of holidays: dates, quoted or bare.
func (p *parser) holidays(n *yaml.Node) {
	for _, item := range p.few(n, "holidays", maxHolidays) {
		_, err := time.Parse(time.DateOnly, item.Value)
		switch {
		case item.Kind != yaml.ScalarNode, err != nil, !dateForm.MatchString(item.Value):
			p.Fail(item, "a holiday is a date like 2026-12-25")
		case p.compiler.calendar.holidays[item.Value]:
			p.Fail(item, "%s appears twice", item.Value)
		default:
			p.compiler.calendar.holidays[item.Value] = true
		}
	}
}
