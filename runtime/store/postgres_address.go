package store

import (
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
)

// Postgres says where a database of PostgreSQL is, and how to get in.
type Postgres struct {
	// URL is postgres://user@host:port/database, as libpq has it (its manual, 34.1.1.2):
	// the port is 5432 if there is none. Parameters may be host, the folder of a
	// server's socket, sslmode, sslrootcert, sslcert and sslkey. Without sslmode, the
	// server has to prove who it is (verify-full), but for one on this machine.
	URL string
	// Password returns the user's password each time a connection is made; nil if none
	// is asked for. Its error must not have the password in it.
	Password func() (string, error)
}

// sslModes are those that do what they say: others fall back to no encryption, or do not
// look at who the server is.
func sslModes() []string { return []string{"disable", "verify-ca", "verify-full"} }

// CheckPostgresURL says what is wrong with a URL of [Postgres]. What it says has no
// password in it, if one stands there.
func CheckPostgresURL(text string) error {
	_, err := parseAddress(text)
	return err
}

// address is what a URL says.
type address struct {
	user, host, port, database string
	params                     map[string]string
}

func parseAddress(text string) (a address, err error) {
	u, err := url.Parse(text)
	if err != nil {
		return a, errors.New("no URL: write postgres://user@host:port/database") // the error would have all of it in it
	}
	if u.Scheme != "postgres" && u.Scheme != "postgresql" {
		return a, fmt.Errorf("scheme %.20q, allowed is postgres", u.Scheme)
	}
	if _, has := u.User.Password(); has {
		return a, errors.New("a password stands in the URL, which is shown and logged: keep it in a file of its own")
	}
	a = address{user: u.User.Username(), host: u.Hostname(), port: u.Port(), database: strings.TrimPrefix(u.Path, "/"), params: map[string]string{}}
	query, err := url.ParseQuery(u.RawQuery)
	if err != nil {
		return a, errors.New("its parameters are no query of a URL")
	}
	if err := a.take(query); err != nil {
		return a, err
	}
	return a, a.check()
}

// take notes the parameters.
func (a *address) take(query url.Values) error {
	allowed := []string{"host", "sslmode", "sslrootcert", "sslcert", "sslkey"}
	for name, values := range query {
		if !slices.Contains(allowed, name) {
			return fmt.Errorf("parameter %.40q, allowed are %s", name, strings.Join(allowed, ", "))
		}
		if len(values) != 1 || values[0] == "" {
			return fmt.Errorf("parameter %s is there %d times, or empty", name, len(values))
		}
		a.params[name] = values[0]
	}
	if socket := a.params["host"]; socket != "" {
		if a.host != "" {
			return errors.New("a host, and the parameter host too: leave one away")
		}
		if !filepath.IsAbs(socket) {
			return errors.New("the parameter host is the folder of a socket, which begins with a slash")
		}
		a.host = socket
		delete(a.params, "host")
	}
	return nil
}

func (a *address) check() error {
	for _, f := range []struct{ what, text string }{{"user", a.user}, {"host", a.host}, {"database", a.database}} {
		if f.text == "" {
			return fmt.Errorf("no %s: write postgres://user@host:port/database", f.what)
		}
		if strings.ContainsAny(f.text, "\x00\r\n") || f.what == "host" && strings.Contains(f.text, ",") {
			return fmt.Errorf("%s %.60q: allowed is one", f.what, f.text)
		}
	}
	if a.port == "" {
		a.port = "5432"
	}
	if a.params["sslmode"] == "" {
		a.params["sslmode"] = "verify-full"
		if a.local() {
			a.params["sslmode"] = "disable"
		}
	}
	if mode := a.params["sslmode"]; !slices.Contains(sslModes(), mode) {
		return fmt.Errorf("sslmode %.20q, allowed are %s", mode, strings.Join(sslModes(), ", "))
	}
	return nil
}

// local: nobody is between us and the server.
func (a *address) local() bool {
	return a.host == "localhost" || a.host == "127.0.0.1" || a.host == "::1" || filepath.IsAbs(a.host)
}

// Place names the database for an operator.
func (p Postgres) Place() string {
	a, err := parseAddress(p.URL)
	if err != nil {
		return "postgres"
	}
	return fmt.Sprintf("%s on %s:%s", a.database, a.host, a.port)
}

// config is what the driver is told. It is told everything: what it is not told, it
// takes from variables and files that nobody named.
func (p Postgres) config(o Options) (*pgx.ConnConfig, error) {
	a, err := parseAddress(p.URL)
	if err != nil {
		return nil, err
	}
	settings := map[string]string{
		"host": a.host, "port": a.port, "user": a.user, "database": a.database, "password": "", "passfile": "",
		"connect_timeout": fmt.Sprint(int(connectMost.Seconds())), "target_session_attrs": "any", "sslsni": "1", "sslcertmode": "allow",
		"sslnegotiation": "postgres", "sslrootcert": "", "sslcert": "", "sslkey": "", "sslpassword": "", "channel_binding": "prefer",
		"min_protocol_version": "3.0", "max_protocol_version": "3.0",
	}
	for name, value := range a.params {
		settings[name] = value
	}
	if a.params["sslmode"] == "disable" { // nobody reads a password on the way
		settings["require_auth"] = "!password"
	}
	var text strings.Builder
	for name, value := range settings {
		fmt.Fprintf(&text, "%s='%s' ", name, strings.NewReplacer(`\`, `\\`, `'`, `\'`).Replace(value))
	}
	config, err := pgx.ParseConfig(text.String())
	if err != nil {
		return nil, flat{err}
	}
	config.RuntimeParams = runtimeParams(o)
	return config, nil
}
