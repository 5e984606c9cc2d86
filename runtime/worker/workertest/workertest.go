// Package workertest gives tests a real worker program. It is built once for
// each test process and without the race detector: a worker built with it takes
// ten times as long to compile a guest.
package workertest

import (
	"errors"
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

// program and tester hold what was built: constants of the process, found on
// first use.
var (
	program = sync.OnceValues(build)
	tester  = sync.OnceValues(buildTester)
)

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

// Tester returns the path of the calling package's own test program, without the
// race detector and without C, for a test that needs a process of its own making
// to be like a worker. Tests of the package run under [Main].
func Tester(t testing.TB) string {
	t.Helper()
	path, err := tester()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// Program returns the path of the program, for examples, which have no
// [testing.TB]. The same holds as for [Command].
func Program() (string, error) { return program() }

// Main runs m's tests and removes what [Command] built. It returns the exit code:
//
//	func TestMain(m *testing.M) { os.Exit(workertest.Main(m)) }
func Main(m *testing.M) int {
	// A process that was killed may have had our number, and left its programs.
	if err := errors.Join(os.RemoveAll(folder()), os.Mkdir(folder(), 0o700)); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
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
	return compiled("hutch-worker", "build", source)
}

// buildTester relies on a test's working folder being its package's.
func buildTester() (string, error) { return compiled("tester", "test", "-c", ".") }

// compiled runs the go command's verb and returns the program it made.
func compiled(name, verb string, args ...string) (string, error) {
	path := filepath.Join(folder(), name)
	if runtime.GOOS == "windows" {
		path += ".exe"
	}
	cmd := exec.Command("go", append([]string{verb, "-trimpath", "-o", path}, args...)...)
	cmd.Env = append(os.Environ(), "GOFLAGS="+withoutRace(os.Getenv("GOFLAGS")), "CGO_ENABLED=0", "GOOS=", "GOARCH=")
	if text, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build %s: %w\n%s", name, err, text)
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
