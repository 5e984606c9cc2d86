package storetest

import (
	"bytes"
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// A Cluster is a PostgreSQL server of the tests' own, in a temporary folder. It listens
// on a socket there, where everybody may come in who may see the folder, and on a port
// of the loopback address, where a password is asked for.
type Cluster struct {
	// Password is that of the user of the URLs.
	Password string

	dir  string
	port int
	as   *account // nil: ourselves
	bin  string
	// server is a shell that ends the server when its input ends, which is also when
	// this process does, however that ends.
	server *exec.Cmd
	input  io.Closer
	made   atomic.Int64
}

// ErrNoPostgres says that there is no PostgreSQL on this machine.
var ErrNoPostgres = errors.New("no initdb and postgres on this machine: install the package postgresql")

// A Server is one cluster for all tests of a program: started when it is first asked
// for, and ended by Close.
type Server struct {
	once    sync.Once
	cluster *Cluster
	err     error
}

// Cluster returns the cluster.
func (s *Server) Cluster() (*Cluster, error) {
	s.once.Do(func() { s.cluster, s.err = StartCluster() })
	return s.cluster, s.err
}

// For returns the cluster for a test. Without PostgreSQL the test is skipped, or fails where
// everything has to run.
func (s *Server) For(t testing.TB) *Cluster {
	t.Helper()
	c, err := s.Cluster()
	if errors.Is(err, ErrNoPostgres) && os.Getenv("HUTCH_REQUIRE") != "all" {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// Database makes a database for a test and returns its URL.
func (s *Server) Database(t testing.TB) string {
	t.Helper()
	address, err := s.For(t).Database(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return address
}

// Close ends the cluster if there is one.
func (s *Server) Close() error {
	if s.cluster == nil {
		return nil
	}
	return s.cluster.Close()
}

// startMost is how long a server may take to start or to end. One that was ended at once
// looks through all that it has, which on a busy machine takes more than a minute.
const startMost = 5 * time.Minute

// serverUser owns the tables.
const serverUser = "hutch"

// StartCluster makes a cluster and starts its server.
func StartCluster() (_ *Cluster, err error) {
	c := &Cluster{Password: rand.Text()}
	if c.bin, err = serverPrograms(); err != nil {
		return nil, err
	}
	if c.as, err = serverAccount(); err != nil {
		return nil, err
	}
	if c.dir, err = os.MkdirTemp(reachableTemp(), "hutch-postgres-"); err != nil {
		return nil, err
	}
	if err := c.initialise(); err != nil {
		return nil, errors.Join(err, os.RemoveAll(c.dir))
	}
	if err := c.Start(); err != nil {
		return nil, errors.Join(err, os.RemoveAll(c.dir))
	}
	return c, nil
}

// serverPrograms is the folder with the programs of the newest version, as Debian has it
// beside the path.
func serverPrograms() (string, error) {
	if path, err := exec.LookPath("initdb"); err == nil {
		path, err = filepath.EvalSymlinks(path)
		return filepath.Dir(path), err
	}
	found, err := filepath.Glob("/usr/lib/postgresql/*/bin/initdb")
	if err != nil || len(found) == 0 {
		return "", ErrNoPostgres
	}
	return filepath.Dir(found[len(found)-1]), nil
}

// An account is who the server runs as where we are root: root may not.
type account struct{ uid, gid uint32 }

// reachableTemp is the folder for temporary files, or /tmp if others may not pass to it.
func reachableTemp() string {
	for dir := os.TempDir(); os.Getuid() == 0; dir = filepath.Dir(dir) {
		if info, err := os.Stat(dir); err != nil || info.Mode()&0o001 == 0 {
			return "/tmp"
		}
		if dir == filepath.Dir(dir) {
			break
		}
	}
	return os.TempDir()
}

// command is one of the server's programs.
func (c *Cluster) command(name string, args ...string) *exec.Cmd {
	cmd := exec.Command(filepath.Join(c.bin, name), args...)
	cmd.Dir = c.dir
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "LC_ALL=C.UTF-8", "TZ=UTC"}
	if c.as != nil {
		c.as.runs(cmd)
	}
	return cmd
}

func (c *Cluster) data() string { return filepath.Join(c.dir, "data") }

func (c *Cluster) initialise() error {
	password := filepath.Join(c.dir, "password")
	if err := os.WriteFile(password, []byte(c.Password+"\n"), 0o600); err != nil {
		return err
	}
	if c.as != nil {
		for _, path := range []string{c.dir, password} {
			if err := os.Chown(path, int(c.as.uid), int(c.as.gid)); err != nil {
				return err
			}
		}
	}
	// The order of words is a language's, as it is where people install one.
	cmd := c.command("initdb", "--pgdata="+c.data(), "--username="+serverUser, "--pwfile="+password, "--auth-local=trust", "--auth-host=scram-sha-256",
		"--encoding=UTF8", "--locale-provider=icu", "--icu-locale=en-US", "--no-sync", "--no-instructions")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("initdb: %w: %s", err, out)
	}
	return os.Remove(password)
}

// Start starts the server, again after it was stopped.
func (c *Cluster) Start() (err error) {
	if c.port == 0 {
		if c.port, err = freePort(); err != nil {
			return err
		}
	}
	// The end of the shell's input ends the server at once, as a crash would: what is
	// kept must stand that, and mostly nobody needs it any more.
	const script = `"$@" </dev/null & server=$!; while read -r _; do :; done; kill -QUIT $server; wait $server`
	log, err := os.OpenFile(filepath.Join(c.dir, "log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, log.Close()) }()
	cmd := c.command("postgres", "-D", c.data(), "-k", c.dir, "-h", "127.0.0.1", "-p", strconv.Itoa(c.port),
		"-c", "max_connections=100", "-c", "shared_buffers=16MB")
	cmd.Args = append([]string{"sh", "-c", script, "sh"}, append([]string{cmd.Path}, cmd.Args[1:]...)...)
	if cmd.Path, err = exec.LookPath("sh"); err != nil {
		return err
	}
	cmd.Stdout, cmd.Stderr = log, log
	if c.input, err = cmd.StdinPipe(); err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	c.server = cmd
	return c.answers()
}

// answers waits until the server does.
func (c *Cluster) answers() error {
	ctx, cancel := context.WithTimeout(context.Background(), startMost)
	defer cancel()
	for {
		err := c.Execute(ctx, "postgres", "select 1")
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			log, _ := os.ReadFile(filepath.Join(c.dir, "log"))
			return errors.Join(fmt.Errorf("the server does not start: %w: %s", err, bytes.TrimSpace(log)), c.Stop())
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// Stop ends the server, and waits for it. What is kept stays.
func (c *Cluster) Stop() error {
	if c.server == nil {
		return nil
	}
	err := c.input.Close()
	late := time.AfterFunc(startMost, func() { _ = c.server.Process.Kill() }) // then Wait tells of it
	defer late.Stop()
	var code *exec.ExitError
	if ended := c.server.Wait(); ended != nil && (!errors.As(ended, &code) || code.ExitCode() < 0) { // what the server says to it is no matter
		err = errors.Join(err, fmt.Errorf("the server did not end: %w", ended))
	}
	c.server = nil
	return err
}

// Close ends the server and removes what is kept.
func (c *Cluster) Close() error { return errors.Join(c.Stop(), os.RemoveAll(c.dir)) }

// Database makes an empty database and returns its URL by way of the socket.
func (c *Cluster) Database(ctx context.Context) (string, error) {
	name := fmt.Sprint("test", c.made.Add(1))
	return c.URL(name), c.Execute(ctx, "postgres", "create database "+name)
}

// URL is how a database is reached by way of the socket, without a password.
func (c *Cluster) URL(database string) string {
	q := url.Values{"host": {c.dir}}
	return fmt.Sprintf("postgres://%s@:%d/%s?%s", serverUser, c.port, database, q.Encode())
}

// LoopbackURL is how a database is reached by way of the port, with a password.
func (c *Cluster) LoopbackURL(database string) string {
	return fmt.Sprintf("postgres://%s@127.0.0.1:%d/%s", serverUser, c.port, database)
}

// Execute runs SQL on a database as another program would.
func (c *Cluster) Execute(ctx context.Context, database, text string) error {
	return ExecutePostgres(ctx, c.URL(database), text)
}

// ExecutePostgres runs SQL on the database of a URL, on the tables of the store if there
// are any.
func ExecutePostgres(ctx context.Context, address, text string) error {
	db, err := sql.Open("pgx", address+"&search_path=hutch&sslmode=disable")
	if err != nil {
		return err
	}
	_, err = db.ExecContext(ctx, text)
	return errors.Join(err, db.Close())
}

// Admit puts a line before those that say who comes in how (pg_hba.conf).
func (c *Cluster) Admit(ctx context.Context, line string) error {
	path := filepath.Join(c.data(), "pg_hba.conf")
	old, err := os.ReadFile(path)
	if err == nil {
		err = os.WriteFile(path, append([]byte(line+"\n"), old...), 0o600) // it keeps its owner
	}
	if err == nil {
		err = c.Execute(ctx, "postgres", "select pg_reload_conf()")
	}
	return err
}

// Backend returns the process of the server that has the store's lock on a database.
func (c *Cluster) Backend(ctx context.Context, address string) (pid int, err error) {
	db, err := sql.Open("pgx", address+"&sslmode=disable")
	if err != nil {
		return 0, err
	}
	const query = `select pid from pg_locks where locktype = 'advisory' and granted and database = (select oid from pg_database where datname = current_database())`
	err = db.QueryRowContext(ctx, query).Scan(&pid)
	return pid, errors.Join(err, db.Close())
}

func freePort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	_, port, err := net.SplitHostPort(l.Addr().String())
	if err := errors.Join(err, l.Close()); err != nil {
		return 0, err
	}
	return strconv.Atoi(port)
}

// NameOf is the database of a URL.
func NameOf(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return ""
	}
	return strings.TrimPrefix(u.Path, "/")
}
