// Package workertest gives tests a real worker program. It is built once for
// each test process and without the race detector: a worker built with it takes
// ten times as long to compile a guest.
package workertest

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
)

// Env names the environment variable that, set to an absolute path, says which
// worker program to use instead of building one.
const Env = "HUTCH_TEST_WORKER"

const source = "github.com/hutch-run/hutch/cmd/hutch-worker"

// program holds what was built: a constant of the process, found on first use.
var program = sync.OnceValues(build)

// Command returns the command that starts a worker, for worker.Options. Tests of
// a package that calls it run under [Main], which removes the program again.
func Command(t testing.TB) []string {
	t.Helper()
	path, err := program()
	if err != nil {
		t.Fatal(err)
	}
	return []string{path}
}

// Main runs m's tests and removes what [Command] built. It returns the exit code:
//
//	func TestMain(m *testing.M) { os.Exit(workertest.Main(m)) }
func Main(m *testing.M) int {
	defer func() {
		// What cannot be removed is a file in the system's temporary folder.
		_ = os.RemoveAll(folder())
	}()
	return m.Run()
}

// folder is this process's own.
func folder() string {
	return filepath.Join(os.TempDir(), fmt.Sprintf("hutch-workertest-%d", os.Getpid()))
}

func build() (string, error) {
	if path := os.Getenv(Env); path != "" {
		if !filepath.IsAbs(path) {
			return "", fmt.Errorf("%s=%s: want an absolute path", Env, path)
		}
		return path, nil
	}
	// A process that was killed may have had our number, and left its program.
	if err := os.RemoveAll(folder()); err != nil {
		return "", err
	}
	if err := os.Mkdir(folder(), 0o700); err != nil {
		return "", err
	}
	path := filepath.Join(folder(), "hutch-worker")
	if runtime.GOOS == "windows" {
		path += ".exe"
	}
	cmd := exec.Command("go", "build", "-trimpath", "-o", path, source)
	cmd.Env = append(os.Environ(), "GOFLAGS="+withoutRace(os.Getenv("GOFLAGS")), "CGO_ENABLED=0", "GOOS=", "GOARCH=")
	if text, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build a worker: %w\n%s", err, text)
	}
	return path, nil
}

func withoutRace(flags string) string {
	var kept []string
	for _, f := range strings.Fields(flags) {
		if f != "-race" && !strings.HasPrefix(f, "-race=") {
			kept = append(kept, f)
		}
	}
	return strings.Join(kept, " ")
}
