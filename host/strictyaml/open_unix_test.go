//go:build unix

package strictyaml

import (
	"net"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// A pipe that nobody writes to would keep open(2) for ever.
func TestReadFileOfOtherKinds(t *testing.T) {
	dir := t.TempDir()
	pipe, link := filepath.Join(dir, "pipe"), filepath.Join(dir, "link")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(pipe, link); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		pipe: "a pipe, not a regular file", link: "a pipe, not a regular file", os.DevNull: "a device, not a regular file",
	} {
		if _, err := ReadFile(path); err == nil || err.Error() != want {
			t.Errorf("%s: %v, want %s", path, err, want)
		}
	}
	t.Chdir(dir) // a socket's path must be short
	l, err := net.Listen("unix", "s")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close() //nolint:errcheck // nothing was sent
	if _, err := ReadFile("s"); err == nil {
		t.Error("a socket was read")
	}
}
