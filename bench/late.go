package main

import (
	"context"
	"strings"
)

// late shows what guests that would go on for ever cost others: how late each ends after
// its call's time is over, and how long a collection waits in the process that it is in.
// Of all of them the worst stands in the table.
func late(ctx context.Context, r *report, s setup) error {
	found, err := goBenchmarks(ctx, s.worker, "Late", "./runtime/dialect")
	if err != nil {
		return err
	}
	end, waits := found.worst("Late/end/", "max-ms"), found.worst("Late/collection/", "p99-ms")
	r.add(
		figure{Name: "an endless guest, after its time is over, at most (" + end.name + ")", Program: "dialect in process",
			Value: end.value, Unit: "ms", AtMost: 20},
		figure{Name: "a collection beside an endless guest, p99 (" + waits.name + ")", Program: "dialect in process",
			Value: waits.value, Unit: "ms", AtMost: 10},
	)
	return found.missing()
}

// named is a value and what of a benchmark it is of.
type named struct {
	name  string
	value float64
}

// worst returns the highest value of the benchmarks whose names begin with a prefix.
func (l *lowest) worst(prefix, unit string) (most named) {
	for key, value := range l.values {
		name, measured := strings.CutSuffix(key, " "+unit)
		if name, ok := strings.CutPrefix(name, prefix); measured && ok && value >= most.value {
			most = named{strings.ReplaceAll(name, "_", " "), value}
		}
	}
	if most.name == "" {
		l.lacks = append(l.lacks, prefix+"... in "+unit)
	}
	return most
}
