package store_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hutch-run/hutch/runtime/session"
	"github.com/hutch-run/hutch/runtime/store"
	"github.com/hutch-run/hutch/runtime/store/storetest"
)

// keep keeps a value for ever.
func keep(ctx context.Context, db *store.DB, key string) error {
	_, _, err := db.KVPut(ctx, "space", key, "test", []byte("value"), 0, store.AnyVersion, 1<<40)
	return err
}

// kept fails unless a value is there, or is not.
func kept(t *testing.T, db *store.DB, key string, want bool) {
	t.Helper()
	_, version, _, err := db.KVGet(t.Context(), "space", key)
	if err != nil || (version > 0) != want {
		t.Errorf("%s: version %d, %v, want it there: %t", key, version, err, want)
	}
}

// refused fails unless err is one, on one line, with that text.
func refused(t *testing.T, err, want error, says string) {
	t.Helper()
	if !errors.Is(err, want) || !strings.Contains(fmt.Sprint(err), says) || strings.ContainsAny(fmt.Sprint(err), "\r\n\t") {
		t.Errorf("got %v, want %v with %q", err, want, says)
	}
}

// A database has one server, whoever else knows where it is.
func TestOneServerForEachDatabase(t *testing.T) {
	everywhere(t, func(t *testing.T, place string) {
		db := openAt(t, place, store.Options{})
		other, err := open(t.Context(), place, store.Options{LockWait: 2 * time.Second})
		if err == nil {
			t.Fatal("opened twice", other.Close())
		}
		refused(t, err, store.ErrOwned, "end the other one, or choose another")
		if err := errors.Join(keep(t.Context(), db, "a"), db.Close()); err != nil {
			t.Fatal(err)
		}
		kept(t, openAt(t, place, store.Options{}), "a", true)
	})
}

// Two names of one file are one database.
func TestOneServerForEachFile(t *testing.T) {
	place, link := filepath.Join(t.TempDir(), "hutch.db"), filepath.Join(t.TempDir(), "other.db")
	if err := os.Symlink(place, link); err != nil {
		t.Skip(err) // on systems where that needs a right
	}
	openAt(t, place, store.Options{})
	_, err := store.Open(t.Context(), link, store.Options{})
	refused(t, err, store.ErrOwned, "a file has one server")
}

// hangUpAll ends all connections to a database, as a server does that is restarted.
func hangUpAll(t *testing.T, place string) {
	t.Helper()
	const text = `select pg_terminate_backend(pid, 5000) from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()`
	if err := storetest.ExecutePostgres(t.Context(), place, text); err != nil {
		t.Fatal(err)
	}
}

// Connections that broke while nobody used them are nobody's business.
func TestBrokenConnectionsAreMadeAnew(t *testing.T) {
	place := server.Database(t)
	db := openAt(t, place, store.Options{Readers: 2})
	for i := range 3 {
		hangUpAll(t, place)
		if err := keep(t.Context(), db, fmt.Sprint(i)); err != nil {
			t.Error(err)
		}
		for range 4 {
			kept(t, db, fmt.Sprint(i), true)
		}
	}
}

// What runs on a connection that breaks fails and is not kept, and what comes next goes on.
func TestConnectionsThatBreakInUse(t *testing.T) {
	place := server.Database(t)
	db := openAt(t, place, store.Options{})
	err := db.Update(t.Context(), func(tx store.Tx) error {
		_, _, err := tx.KVPut(store.KVWrite{Space: "space", Key: "a", Writer: "test", IfVersion: store.AnyVersion, MaxBytes: 1 << 20})
		hangUpAll(t, place)
		return err
	})
	refused(t, err, store.ErrUnavailable, "nothing was kept")
	kept(t, db, "a", false)
	err = db.View(t.Context(), func(tx store.Tx) error {
		hangUpAll(t, place)
		_, _, err := tx.KVGet("space", "a")
		return err
	})
	refused(t, err, store.ErrUnavailable, "the database server does not answer")
	if err := keep(t.Context(), db, "b"); err != nil {
		t.Error(err)
	}
	kept(t, db, "b", true)
}

// outage is what a change may fail with while a server's process is killed.
func outage(err error) bool { return errors.Is(err, store.ErrUnavailable) }

// One process of the server that is killed takes all its others with it, and the server
// begins anew. Who was told that a change is kept, finds it, and who was told that nothing
// was, finds nothing.
func TestBackendKilledUnderLoad(t *testing.T) {
	place, c := server.Database(t), server.For(t)
	db := openAt(t, place, store.Options{LockWait: 20 * time.Second})
	const writers, kills, each = 8, 3, 150
	var mu sync.Mutex
	told, round := map[string]bool{}, 0 // whether a change was kept
	more := make(chan struct{})
	var wg sync.WaitGroup
	for w := range writers {
		wg.Go(func() {
			for i := 0; ; i++ {
				select {
				case <-more:
					return
				default:
				}
				name := fmt.Sprintf("w%d-%d", w, i)
				err := db.Update(t.Context(), func(tx store.Tx) error { return writeHalves(tx, name, i) })
				if err != nil && !outage(err) {
					t.Errorf("%s: %v", name, err)
				}
				mu.Lock()
				if !errors.Is(err, store.ErrUnknown) {
					told[name] = err == nil
				}
				if err == nil {
					round++
				}
				mu.Unlock()
			}
		})
	}
	enough := func() bool {
		mu.Lock()
		defer mu.Unlock()
		return round >= each
	}
	last := 0
	for range kills {
		await(t, enough)
		last = killBackend(t, c, place, last)
		mu.Lock()
		round = 0
		mu.Unlock()
	}
	await(t, enough)
	close(more)
	wg.Wait()
	verifyTold(t, db, told)
}

// killBackend kills the server's process that the writer of a database has, which is
// another one than the last, and returns its number.
func killBackend(t *testing.T, c *storetest.Cluster, place string, last int) int {
	t.Helper()
	pid, err := c.Backend(t.Context(), place)
	if err != nil || pid == last {
		t.Fatalf("process %d after %d, %v", pid, last, err)
	}
	backend, err := os.FindProcess(pid)
	if err := errors.Join(err, backend.Kill()); err != nil {
		t.Fatal(err)
	}
	return pid
}

// await waits for what happens under load.
func await(t *testing.T, happened func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !happened() {
		select {
		case <-ctx.Done():
			t.Fatal("it never happened")
		case <-tick.C:
		}
	}
}

func verifyTold(t *testing.T, db *store.DB, told map[string]bool) {
	t.Helper()
	keptOnes := 0
	err := db.View(t.Context(), func(tx store.Tx) error {
		for name, want := range told {
			if want {
				keptOnes++
			}
			for _, half := range []string{"left", "right"} {
				if _, ok, err := tx.KVGet(crashSpace, name+"/"+half); err != nil || ok != want {
					t.Errorf("%s of %s: there %t, told %t, %v", half, name, ok, want, err)
				}
			}
		}
		return verifyWhole(t, tx, keptOnes)
	})
	if err != nil {
		t.Error(err)
	}
}

// ownServer is a server with an empty database, to be stopped and started: one that was
// stopped looks through all that it has before it begins, and that of the other tests has
// the databases of all.
func ownServer(t *testing.T) (c *storetest.Cluster, place string) {
	t.Helper()
	server.For(t) // or there is none on this machine
	c, err := storetest.StartCluster()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	if place, err = c.Database(t.Context()); err != nil {
		t.Fatal(err)
	}
	return c, place
}

// A server that is away is waited for, and what it had is there when it is back.
func TestServerIsRestarted(t *testing.T) {
	c, place := ownServer(t)
	db := openAt(t, place, store.Options{LockWait: 30 * time.Second})
	if err := errors.Join(keep(t.Context(), db, "a"), c.Stop()); err != nil {
		t.Fatal(err)
	}
	done := make(chan error)
	go func() { done <- keep(t.Context(), db, "b") }()
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
	kept(t, db, "a", true)
	kept(t, db, "b", true)
}

// A server that stays away is told of, to those who change something, who look, and who
// open.
func TestServerStaysAway(t *testing.T) {
	c, place := ownServer(t)
	db := openAt(t, place, store.Options{})
	store.Impatient(db, 100*time.Millisecond)
	if err := c.Stop(); err != nil {
		t.Fatal(err)
	}
	refused(t, keep(t.Context(), db, "a"), store.ErrUnavailable, "does not answer")
	_, _, _, err := db.KVGet(t.Context(), "space", "a")
	refused(t, err, store.ErrUnavailable, "does not answer")
	_, err = open(t.Context(), place, store.Options{LockWait: 100 * time.Millisecond})
	refused(t, err, store.ErrUnavailable, storetest.NameOf(place))
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	await(t, func() bool { return keep(t.Context(), db, "a") == nil })
}

// History is only added to, whatever runs on the connection.
func TestHistoryIsKeptByTheServer(t *testing.T) {
	place := server.Database(t)
	db := openAt(t, place, store.Options{})
	if _, err := db.Decide(t.Context(), "alice", "grant", "a.wasm", "digest", "definitions", "{}"); err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{"update decision set who = 'bob'", "delete from decision", "truncate decision"} {
		if err := storetest.ExecutePostgres(t.Context(), place, text); err == nil || !strings.Contains(err.Error(), "never deleted") {
			t.Errorf("%s: %v", text, err)
		}
	}
	if all, err := db.Decisions(t.Context(), "", 0, 10); err != nil || len(all) != 1 || all[0].Who != "alice" {
		t.Errorf("%+v, %v", all, err)
	}
}

// What a server would not keep as it should is refused before anything is written.
func TestRefusedServers(t *testing.T) {
	c := server.For(t)
	admin := func(text string) func(*testing.T, string) {
		return func(t *testing.T, place string) {
			t.Helper()
			for one := range strings.SplitSeq(text, ";") { // each by itself: some must not be in a transaction
				if err := c.Execute(t.Context(), storetest.NameOf(place), strings.ReplaceAll(one, "$name", storetest.NameOf(place))); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	for _, test := range []struct {
		name         string
		before, then func(t *testing.T, place string)
		is           error
		says         string
	}{
		{"another program's schema", admin("create schema hutch; create table hutch.t (a int)"), nil, store.ErrForeign, "belongs to another program"},
		{"a disk that is not waited for", admin("alter system set fsync = off; select pg_reload_conf()"), admin("alter system reset fsync; select pg_reload_conf()"), store.ErrPlace, "fsync is off"},
		{"no server for changes", admin("alter database $name set default_transaction_read_only = on"), nil, store.ErrPlace, "choose the primary"},
	} {
		t.Run(test.name, func(t *testing.T) {
			place := server.Database(t)
			test.before(t, place)
			if test.then != nil {
				defer test.then(t, place)
			}
			var err error
			await(t, func() bool { // a setting counts when the server has read it
				var db *store.DB
				if db, err = open(t.Context(), place, store.Options{}); err != nil {
					return true
				}
				return db.Close() != nil
			})
			refused(t, err, test.is, test.says)
		})
	}
	t.Run("another encoding", func(t *testing.T) {
		if err := c.Execute(t.Context(), "postgres", "create database latin encoding 'LATIN1' locale_provider libc locale 'C' template template0"); err != nil {
			t.Fatal(err)
		}
		_, err := open(t.Context(), c.URL("latin"), store.Options{})
		refused(t, err, store.ErrPlace, "its encoding is LATIN1")
	})
	t.Run("no such database", func(t *testing.T) {
		_, err := open(t.Context(), c.URL("nowhere"), store.Options{})
		if err == nil || outage(err) || !strings.Contains(err.Error(), `database "nowhere" does not exist`) {
			t.Errorf("got %v", err)
		}
	})
}

// A password is asked for with each connection, nothing else is looked at for one, and
// no error has it.
func TestPasswords(t *testing.T) {
	c, ctx := server.For(t), t.Context()
	url := c.LoopbackURL(storetest.NameOf(server.Database(t)))
	t.Setenv("PGPASSWORD", c.Password)
	asked := 0
	for _, test := range []struct {
		name     string
		password func() (string, error)
		says     string
	}{
		{"none", nil, "password"},
		{"a wrong one", func() (string, error) { return "wrong-one", nil }, "password authentication failed"},
		{"one that cannot be read", func() (string, error) { return "", errors.New("no such file") }, "no such file"},
		{"the right one", func() (string, error) { asked++; return c.Password, nil }, ""},
	} {
		db, err := store.OpenPostgres(ctx, store.Postgres{URL: url, Password: test.password}, store.Options{Readers: 3, LockWait: time.Minute})
		if err == nil {
			err = db.Close()
		}
		said := fmt.Sprint(err)
		if (err == nil) != (test.says == "") || !strings.Contains(said, test.says) || strings.Contains(said, "wrong-one") || strings.ContainsAny(said, "\n\t") {
			t.Errorf("%s: %v", test.name, err)
		}
	}
	if asked != 4 {
		t.Errorf("asked %d times for four connections", asked)
	}
}

func TestPostgresURLs(t *testing.T) {
	for url, says := range map[string]string{
		"postgres://ann@db.example.org/hutch":                                          "",
		"postgresql://ann@db.example.org:6432/hutch?sslmode=verify-ca&sslrootcert=/ca": "",
		"postgres://ann@/hutch?host=/run/postgresql":                                   "",
		"postgres://ann@db.example.org/hutch?sslmode=disable":                          "",
		"postgres://ann:pw-in-it@db.example.org/hutch":                                 "a password stands in the URL",
		"postgres://ann:pw-in-it@db.example.org:x/hutch":                               "no URL",
		"postgres://ann@db.example.org/hutch?password=pw-in-it":                        `parameter "password"`,
		"postgres://ann@db.example.org/hutch?options=-c%20fsync=off":                   `parameter "options"`,
		"postgres://ann@db.example.org/hutch?sslmode=prefer":                           `sslmode "prefer"`,
		"postgres://ann@db.example.org/hutch?sslmode=require":                          `sslmode "require"`,
		"postgres://ann@db.example.org/hutch?sslmode=disable&sslmode=verify-full":      "there 2 times",
		"postgres://ann@one,two/hutch":                                                 "allowed is one",
		"postgres://ann@db.example.org/hutch?host=/run":                                "leave one away",
		"postgres://ann@/hutch?host=run":                                               "begins with a slash",
		"postgres://db.example.org/hutch":                                              "no user",
		"postgres://ann@db.example.org":                                                "no database",
		"postgres://ann@/hutch":                                                        "no host",
		"mysql://ann@db.example.org/hutch":                                             `scheme "mysql"`,
		"/var/lib/hutch.db":                                                            "allowed is postgres",
	} {
		err := store.CheckPostgresURL(url)
		if (err == nil) != (says == "") || says != "" && !strings.Contains(err.Error(), says) || strings.Contains(fmt.Sprint(err), "pw-in-it") {
			t.Errorf("%s: %v, want %q", url, err, says)
		}
	}
}

// Bytes that are no text are kept as the same text on each engine, and nothing is found
// under them.
func TestWhatIsNoText(t *testing.T) {
	everywhere(t, func(t *testing.T, place string) {
		db, ref := openAt(t, place, store.Options{}), session.Ref{Owner: "ann", ID: "t"}
		run := session.Record{ID: "r", Status: session.Failed, Created: time.Now(), Ended: time.Now(), Message: "cut\xff\x00off", Code: "c\x00"}
		done, err := db.CommitThread(t.Context(), session.Change{
			Ref: ref, At: time.Now(), Title: "a\x00b\xc0", State: []byte("\"\xff\""), New: []session.Record{run}, Events: []session.Kept{{Run: "r", Body: []byte("\"\xff\"")}},
		})
		if err != nil {
			t.Fatal(err)
		}
		th, err1 := db.Thread(t.Context(), ref)
		runs, err2 := db.ThreadRuns(t.Context(), ref, "", 10)
		if err := errors.Join(err1, err2); err != nil || th.Title != "a\ufffdb\ufffd" || string(th.State) != "\"\ufffd\"" || runs[0].Message != "cut\ufffd\ufffdoff" || done.Thread.Title != th.Title {
			t.Errorf("%+v, %+v, %v", th, runs, err)
		}
		for _, id := range []string{"t\x00", "\xff", "t\xff"} {
			if _, err := db.Thread(t.Context(), session.Ref{Owner: "ann", ID: id}); !errors.Is(err, session.ErrNotFound) {
				t.Errorf("%q: %v", id, err)
			}
			if _, version, _, err := db.KVGet(t.Context(), id, id); version != 0 || err != nil {
				t.Errorf("%q: version %d, %v", id, version, err)
			}
		}
	})
}

// Whatever the database's order of words is, keys are in that of their bytes.
func TestServerOrdersWords(t *testing.T) {
	place := server.Database(t)
	db, err := sql.Open("pgx", place+"&sslmode=disable")
	if err != nil {
		t.Fatal(err)
	}
	var less bool
	err = db.QueryRowContext(t.Context(), "select 'a' < 'B'").Scan(&less)
	if err := errors.Join(err, db.Close()); err != nil || !less {
		t.Errorf("the tests' server orders words by their bytes: %v", err)
	}
}

// Every row that a change reads is read from an index on a server too, whatever it
// thinks of the size of a table.
func TestStatementsUseIndexesOnAServer(t *testing.T) {
	place := server.Database(t)
	db := openAt(t, place, store.Options{})
	if err := db.Update(t.Context(), store.EveryStatement); err != nil {
		t.Fatal(err)
	}
	pool, err := sql.Open("pgx", place+"&sslmode=disable&search_path=hutch&plan_cache_mode=force_generic_plan&enable_seqscan=off&enable_sort=off&enable_bitmapscan=off")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = pool.Close() }()
	conn, err := pool.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	checked := 0
	for i, query := range store.Prepared(db) {
		if !strings.Contains(query, " from ") && !strings.HasPrefix(query, "update ") && !strings.HasPrefix(query, "insert into") || strings.Contains(query, "insert into migration") {
			continue
		}
		checked++
		for _, step := range planOnServer(t, conn, fmt.Sprint("q", i), query) {
			text := strings.Contains(step, "on board_search") // its index has no plan but for bitmaps, and need not be there
			if strings.Contains(step, "Seq Scan") && !text || strings.Contains(step, "Sort") && strings.Contains(query, "thread") {
				t.Errorf("%s: %s", query, step)
			}
		}
	}
	if checked < 40 {
		t.Errorf("only %d statements were looked at", checked)
	}
}

func planOnServer(t *testing.T, conn *sql.Conn, name, query string) (steps []string) {
	t.Helper()
	if _, err := conn.ExecContext(t.Context(), "prepare "+name+" as "+query); err != nil {
		t.Fatal(query, err)
	}
	var params int
	const count = `select coalesce(array_length(parameter_types, 1), 0) from pg_prepared_statements where name = $1`
	if err := conn.QueryRowContext(t.Context(), count, name).Scan(&params); err != nil {
		t.Fatal(err)
	}
	text := "explain execute " + name
	if params > 0 {
		text += "(" + strings.TrimSuffix(strings.Repeat("null,", params), ",") + ")"
	}
	rows, err := conn.QueryContext(t.Context(), text)
	if err != nil {
		t.Fatal(query, err)
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		var step string
		if err := rows.Scan(&step); err != nil {
			t.Fatal(err)
		}
		steps = append(steps, step)
	}
	return steps
}

// Nobody on the way learns a password, and no server is believed that does not show who
// it is where it should.
func TestServersThatAskForTooMuch(t *testing.T) {
	c, ctx := server.For(t), t.Context()
	name := storetest.NameOf(server.Database(t))
	p := store.Postgres{URL: c.LoopbackURL(name), Password: func() (string, error) { return c.Password, nil }}
	o := store.Options{LockWait: 2 * time.Second}
	proven := store.Postgres{URL: p.URL + "?sslmode=verify-full", Password: p.Password}
	_, err := store.OpenPostgres(ctx, proven, o)
	refused(t, err, store.ErrUnavailable, "refused TLS")
	if err := c.Admit(ctx, "host "+name+" all 127.0.0.1/32 password"); err != nil {
		t.Fatal(err)
	}
	await(t, func() bool { // until the server has read it
		var db *store.DB
		if db, err = store.OpenPostgres(ctx, p, o); err != nil {
			return true
		}
		return db.Close() != nil
	})
	if err == nil || strings.Contains(err.Error(), c.Password) || !strings.Contains(err.Error(), "auth") {
		t.Errorf("got %v", err)
	}
	t.Log(err)
}
