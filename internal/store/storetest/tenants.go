package storetest

import (
	"reflect"

	"github.com/gatehouse-dev/gatehouse"
)

// anyTenant holds the methods that take rows of any tenant: a ceremony begins before its tenant is known.
var anyTenant = map[string]bool{"InsertCeremony": true}

// otherTenantsRows passes a row of another tenant to each method that takes a
// row.
func (s *suite) otherTenantsRows() {
	const other = "acme"
	s.newTenants(other)
	methods := reflect.TypeFor[gatehouse.Tx]()
	asked := 0
	for i := range methods.NumMethod() {
		m := methods.Method(i)
		args, row := rowOf(m.Type, other)
		if !row || anyTenant[m.Name] {
			continue
		}
		asked++
		s.updateReturns(gatehouse.ErrOtherTenant, m.Name, func(tx gatehouse.Tx) error {
			call := reflect.ValueOf(tx).MethodByName(m.Name)
			do := call.Call
			if m.Type.IsVariadic() {
				do = call.CallSlice
			}
			results := do(args)
			err, _ := results[len(results)-1].Interface().(error)
			return err
		})
	}
	if asked < 40 {
		s.Errorf("only %d methods that take a row were found, want 40 or more", asked)
	}
}

// rowOf makes the arguments of a method and reports whether one of them is a
// row of the tenant.
func rowOf(method reflect.Type, tenant string) (args []reflect.Value, row bool) {
	for i := range method.NumIn() {
		t := method.In(i)
		v := reflect.New(t).Elem()
		switch {
		case t.Kind() == reflect.Pointer && t.Elem().Kind() == reflect.Struct:
			v.Set(reflect.New(t.Elem()))
			row = setTenant(v.Elem(), tenant) || row
		case t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.Struct:
			v = reflect.Append(v, reflect.New(t.Elem()).Elem())
			row = setTenant(v.Index(0), tenant) || row
		case t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.Pointer && t.Elem().Elem().Kind() == reflect.Struct:
			v = reflect.Append(v, reflect.New(t.Elem().Elem()))
			row = setTenant(v.Index(0).Elem(), tenant) || row
		case t.Kind() == reflect.Struct:
			row = setTenant(v, tenant) || row
		}
		args = append(args, v)
	}
	return args, row
}

func setTenant(row reflect.Value, tenant string) bool {
	name := "Tenant"
	if row.Type() == reflect.TypeFor[gatehouse.Tenant]() {
		name = "ID"
	}
	f := row.FieldByName(name)
	if !f.IsValid() {
		return false
	}
	f.SetString(tenant)
	return true
}
