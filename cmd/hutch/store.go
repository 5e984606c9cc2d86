package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"

	"github.com/hutch-run/hutch/host/ownfile"
	"github.com/hutch-run/hutch/runtime/store"
)

// storeConfig says where what lasts is kept: in the state folder, if URL is empty.
type storeConfig struct {
	// URL is that of a database of PostgreSQL; there is no password in it.
	URL string
	// PasswordFile has the password, absolute; empty if none is asked for.
	PasswordFile string
}

// Keys of the store.
const (
	keyStoreURL      = "store.url"
	keyStorePassword = "store.password_file"
)

// maxPasswordFile is the largest file with a password, in bytes.
const maxPasswordFile = 4 << 10

func storeSettings() []setting {
	return []setting{
		{key: keyStoreURL, env: envStoreURL, fallback: "a file in the state folder", derived: true, allowed: "postgres://USER@HOST:PORT/DATABASE, with sslmode and sslrootcert behind it where they are needed", example: "postgres://hutch@db.example.org/hutch",
			means: "PostgreSQL database that everything is kept in which lasts", set: func(cfg *Config, values []string) error {
				err := store.CheckPostgresURL(values[0])
				if err != nil { // there may be a password anywhere in it
					g := cfg.given[keyStoreURL]
					g.values = []string{"not shown, since it is wrong"}
					cfg.given[keyStoreURL] = g
				}
				cfg.Store.URL = values[0]
				return err
			}},
		{key: keyStorePassword, env: envStorePassword, fallback: "none", derived: true, allowed: "a file of mode 0600", example: "db-password",
			means: "password of the user in the URL; read with each connection", path: true, set: func(cfg *Config, values []string) error { cfg.Store.PasswordFile = values[0]; return nil }},
	}
}

// password reads the file. Its error has nothing of what is in it.
func (c storeConfig) password() (string, error) {
	body, err := readOwn(keyStorePassword, c.PasswordFile, maxPasswordFile, ownfile.Needs{Private: true})
	if err != nil {
		return "", err
	}
	if body = bytes.TrimRight(body, "\r\n"); len(body) == 0 {
		return "", fmt.Errorf("%s %s: it is empty", keyStorePassword, quoted(c.PasswordFile))
	}
	return string(body), nil
}

// checkStore says what is wrong with the password of a database, and asks no server.
func (cfg Config) checkStore() []error {
	if cfg.Store.URL == "" || cfg.Store.PasswordFile == "" {
		return nil
	}
	if _, err := cfg.Store.password(); err != nil {
		return []error{err}
	}
	return nil
}

// open opens what lasts.
func (c storeConfig) open(ctx context.Context, st state, log *slog.Logger) (*store.DB, error) {
	o := store.Options{Logger: log}
	if c.URL == "" {
		if err := st.checkHere(); err != nil {
			return nil, err
		}
		return store.Open(ctx, st.database(), o)
	}
	p := store.Postgres{URL: c.URL}
	if c.PasswordFile != "" {
		if _, err := c.password(); err != nil { // said at once, and not as a server's failure
			return nil, err
		}
		p.Password = c.password
	}
	db, err := store.OpenPostgres(ctx, p, o)
	if err != nil {
		return nil, err
	}
	if err := st.noteElsewhere(p.Place()); err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return db, nil
}

// maxPlace bounds how much is read of what says where a database is, in bytes.
const maxPlace = 4 << 10

// checkHere refuses a folder whose store is a database on a server: whoever forgot to
// name it would begin anew, without the tokens that close the door and with nothing held.
func (s state) checkHere() error {
	place, err := readOwn("store", s.elsewhere(), maxPlace, ownfile.Needs{})
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return hinted(fmt.Errorf("state %s: what lasts is in the database %s, and %s names none", quoted(s.dir), quoted(string(bytes.TrimSpace(place))), keyStoreURL),
		"name the configuration that does with --%s FILE or %s, or begin anew in a file with: rm %s", flagConfig, envConfig, shellWord(s.elsewhere()))
}

// noteElsewhere remembers where the database is.
func (s state) noteElsewhere(place string) error {
	line := place + "\n"
	if old, err := readOwn("store", s.elsewhere(), maxPlace, ownfile.Needs{}); err == nil && string(old) == line {
		return nil
	}
	return writeAtomicMode(s.elsewhere(), []byte(line), 0o600)
}

// openStore opens what lasts. Only the owner of the state folder may.
func openStore(ctx context.Context, cfg Config, owned bool, log *slog.Logger) (*store.DB, error) {
	if !owned {
		return nil, nil
	}
	db, err := cfg.Store.open(ctx, state{cfg.State}, log)
	if cfg.Store.URL != "" {
		return db, hintedAtServer(err)
	}
	switch {
	case errors.Is(err, store.ErrOwned):
		err = hinted(err, "use another state folder with --%s DIR", flagState)
	case errors.Is(err, store.ErrPlace):
		err = hinted(err, "use a state folder on a disk of this machine with --%s DIR, or a server with %s", flagState, keyStoreURL)
	case errors.Is(err, store.ErrCorrupt), errors.Is(err, store.ErrForeign):
		err = hinted(err, "move the file away; what tools kept and which versions served is lost with it")
	}
	return db, err
}

// hintedAtServer adds what to do about a database on a server.
func hintedAtServer(err error) error {
	switch {
	case errors.Is(err, store.ErrOwned):
		return hinted(err, "one hutch has a database at a time: give this one another in %s, or use the state folder of the one that runs", keyStoreURL)
	case errors.Is(err, store.ErrUnavailable):
		return hinted(err, "see whether the server of %s runs, and can be reached from here", keyStoreURL)
	}
	return err
}
