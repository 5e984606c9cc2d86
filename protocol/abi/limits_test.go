package abi

import (
	"reflect"
	"testing"
)

// No limit is left out: each one comes from the base unless it is set.
func TestLimitsOr(t *testing.T) {
	fields := reflect.TypeFor[Limits]()
	for i := range fields.NumField() {
		var l, base Limits
		set(reflect.ValueOf(&base).Elem().Field(i), 2)
		if got := l.Or(base); got != base {
			t.Errorf("%s is not taken from the base", fields.Field(i).Name)
		}
		set(reflect.ValueOf(&l).Elem().Field(i), 1)
		if got := l.Or(base); got != l {
			t.Errorf("%s of the base counts though it is set", fields.Field(i).Name)
		}
	}
}

func set(v reflect.Value, n int64) {
	if v.Kind() == reflect.Bool {
		v.SetBool(true)
		return
	}
	v.SetInt(n)
}
