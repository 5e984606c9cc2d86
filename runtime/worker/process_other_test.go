//go:build !linux

package worker

const diesWithParent = false

func isRunning(int) bool { return false }

// greedyMain is for the platform that has a limit.
func greedyMain(string) int { return 1 }
