//go:build !linux

package worker

const asProbe = "__probe" // tries what a jail forbids; there is none here

func probeMain([]string) int { return 1 }
