//go:build !wasip1

package sdk

// serve has nothing to do: natively, tests call the module they hold.
func serve(*Module) {}
