package owner

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/gofrs/flock"
)

// Files in the state directory.
const (
	lockFile   = "owner.lock"
	heirFile   = "heir.lock"
	infoFile   = "owner.json"
	socketFile = "hutch.sock"
)

// maxSocketPath is the longest path that every system takes for a socket: 104
// bytes on BSD, its final zero included.
const maxSocketPath = 103

// headerTimeout bounds how long a client may take to say what it wants.
const headerTimeout = 5 * time.Second

// An Owner holds a state directory. Release gives it up.
type Owner struct {
	dir      string
	info     Info
	lock     *flock.Flock
	listener net.Listener
	// private is the folder that was made for the socket alone, if any.
	private string
	once    sync.Once
	err     error
}

// Claim takes the directory, which must exist and belong to the user alone. The
// error is [ErrOwned] if another process has it. PID, Started and Socket of info
// are filled in.
func Claim(dir string, info Info) (_ *Owner, err error) {
	lock := lockOf(dir, lockFile)
	taken, err := lock.TryLock()
	if err != nil {
		return nil, fmt.Errorf("lock the state directory: %w", err)
	}
	if !taken {
		return nil, ErrOwned
	}
	o := &Owner{dir: dir, lock: lock}
	defer func() {
		if err != nil {
			err = errors.Join(err, o.Release())
		}
	}()
	socket, err := o.place()
	if err != nil {
		return nil, err
	}
	info.PID, info.Started, info.Socket = os.Getpid(), time.Now().UTC().Truncate(time.Second), socket
	o.info = info
	if o.listener, err = listen(socket); err != nil {
		return nil, err
	}
	return o, o.announce()
}

// place says where the socket shall be: in the directory, or, if that would be
// too long a path, in a folder of its own.
func (o *Owner) place() (string, error) {
	socket := filepath.Join(o.dir, socketFile)
	if len(socket) <= maxSocketPath {
		return socket, nil
	}
	private, err := os.MkdirTemp("", "hutch-")
	if err != nil {
		return "", fmt.Errorf("a folder for the socket: %w", err)
	}
	o.private = private
	return filepath.Join(private, socketFile), nil
}

// listen opens the socket. One that is there is left from an owner that was
// killed: the lock is ours.
func listen(socket string) (net.Listener, error) {
	if err := os.Remove(socket); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("an old socket: %w", err)
	}
	l, err := net.Listen("unix", socket)
	if err != nil {
		return nil, err
	}
	if err := os.Chmod(socket, 0o600); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return l, nil
}

// announce writes the info beside the lock, whole or not at all.
func (o *Owner) announce() error {
	text, err := json.Marshal(o.info)
	if err != nil {
		return err
	}
	f, err := os.CreateTemp(o.dir, infoFile+".*")
	if err != nil {
		return fmt.Errorf("announce the owner: %w", err)
	}
	_, err = f.Write(append(text, '\n'))
	err = errors.Join(err, f.Close())
	if err == nil {
		err = os.Rename(f.Name(), filepath.Join(o.dir, infoFile))
	}
	if err != nil {
		return fmt.Errorf("announce the owner: %w", errors.Join(err, os.Remove(f.Name())))
	}
	return nil
}

// Info is what the owner announced.
func (o *Owner) Info() Info { return o.info }

// Serve answers on the socket with h until ctx ends or the owner is released. A
// handler may take over its connection (see [http.Hijacker]); those are h's to
// end.
func (o *Owner) Serve(ctx context.Context, h http.Handler, log *slog.Logger) error {
	server := &http.Server{
		Handler: h, ReadHeaderTimeout: headerTimeout,
		ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelDebug),
	}
	stop := context.AfterFunc(ctx, func() { _ = server.Close() }) // its error is that of a listener that is closed
	defer stop()
	err := server.Serve(&sameUser{Listener: o.listener, log: log})
	if errors.Is(err, http.ErrServerClosed) || errors.Is(err, net.ErrClosed) {
		return nil
	}
	return err
}

// Release closes the socket and gives the directory up. Only the first call does
// anything.
func (o *Owner) Release() error {
	o.once.Do(func() {
		if o.listener != nil { // closing removes the socket
			if err := o.listener.Close(); !errors.Is(err, net.ErrClosed) {
				o.err = err
			}
			o.err = errors.Join(o.err, ignoreMissing(os.Remove(filepath.Join(o.dir, infoFile))))
		}
		if o.private != "" {
			o.err = errors.Join(o.err, os.RemoveAll(o.private))
		}
		// The file stays: one that is removed while another waits for it would make
		// two owners.
		o.err = errors.Join(o.err, o.lock.Close())
	})
	return o.err
}

func ignoreMissing(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// maxInfo bounds what is read of an info file, in bytes.
const maxInfo = 64 << 10

// Look returns what the owner of dir announced. The error is [ErrGone] if there is
// none, or none that can be made out.
func Look(dir string) (Info, error) {
	f, err := os.Open(filepath.Join(dir, infoFile))
	if err != nil {
		return Info{}, fmt.Errorf("%w: %w", ErrGone, err)
	}
	text, err := io.ReadAll(io.LimitReader(f, maxInfo))
	if err = errors.Join(err, f.Close()); err != nil {
		return Info{}, fmt.Errorf("%w: %w", ErrGone, err)
	}
	var info Info
	if err := json.Unmarshal(text, &info); err != nil || info.Socket == "" {
		return Info{}, fmt.Errorf("%w: %s is damaged", ErrGone, infoFile)
	}
	return info, nil
}
