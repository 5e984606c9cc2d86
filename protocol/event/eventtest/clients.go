package eventtest

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// Clients is the folder of the AG-UI clients that we did not write, for a test of a package
// that lies at root from the module's. Without Node or without them the test is skipped, and
// fails with HUTCH_REQUIRE=all.
func Clients(t testing.TB, root string) string {
	t.Helper()
	folder, err := filepath.Abs(filepath.Join(root, "testdata/conformance/agui"))
	if err != nil {
		t.Fatal(err)
	}
	missing := ""
	if _, err := exec.LookPath("node"); err != nil {
		missing = "node is not there"
	} else if _, err := os.Stat(filepath.Join(folder, "node_modules/@ag-ui/client")); err != nil {
		missing = "the AG-UI clients are not there: npm install in testdata/conformance/agui"
	}
	switch {
	case missing == "":
	case os.Getenv("HUTCH_REQUIRE") == "all":
		t.Fatal(missing)
	default:
		t.Skip(missing)
	}
	return folder
}
