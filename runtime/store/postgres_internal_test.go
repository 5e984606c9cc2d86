package store

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

// What nobody named is not looked at, and a server on another machine has to prove who it
// is.
func TestWhatTheDriverIsTold(t *testing.T) {
	for name, value := range map[string]string{
		"PGHOST": "elsewhere", "PGPORT": "1", "PGUSER": "eve", "PGDATABASE": "other", "PGPASSWORD": "secret", "PGSSLMODE": "disable", "PGSSLROOTCERT": "/nowhere",
		"PGOPTIONS": "-c synchronous_commit=off", "PGAPPNAME": "other", "PGTZ": "Mars", "PGCONNECT_TIMEOUT": "9999", "PGTARGETSESSIONATTRS": "standby", "HOME": t.TempDir(),
	} {
		t.Setenv(name, value)
	}
	for url, proven := range map[string]bool{
		"postgres://ann@db.example.org/hutch": true, "postgres://ann@localhost/hutch": false, "postgres://ann@127.0.0.1:6000/hutch": false,
		"postgres://ann@[::1]/hutch": false, "postgres://ann@localhost/hutch?sslmode=verify-full": true, "postgres://ann@db.example.org/hutch?sslmode=verify-ca": true,
		"postgres://ann@db.example.org/hutch?sslmode=disable": false, "postgres://ann@/hutch?host=/run": false, "postgres://an%27n@localhost/hu%5Ctch%20": false,
	} {
		c, err := Postgres{URL: url}.config(Options{}.withDefaults())
		if err != nil {
			t.Errorf("%s: %v", url, err)
			continue
		}
		if (c.TLSConfig != nil) != proven || len(c.Fallbacks) != 0 || c.ConnectTimeout != connectMost || c.Password != "" || c.ValidateConnect != nil {
			t.Errorf("%s: TLS %t, %d fallbacks, %s, password %q", url, c.TLSConfig != nil, len(c.Fallbacks), c.ConnectTimeout, c.Password)
		}
		if proven && !strings.Contains(url, "verify-ca") && (c.TLSConfig.InsecureSkipVerify || c.TLSConfig.ServerName != c.Host) {
			t.Errorf("%s: proves %q, skipped %t", url, c.TLSConfig.ServerName, c.TLSConfig.InsecureSkipVerify)
		}
		if c.RuntimeParams["options"] != "" || c.RuntimeParams["timezone"] != "" || c.RuntimeParams["synchronous_commit"] != "on" || c.RuntimeParams["application_name"] != "hutch" {
			t.Errorf("%s: %v", url, c.RuntimeParams)
		}
		if a, err := parseAddress(url); err != nil || c.Host != a.host || c.User != a.user || c.Database != a.database || c.Host == "elsewhere" {
			t.Errorf("%s: %s at %s, %s, %v", url, c.User, c.Host, c.Database, err)
		}
	}
}

func TestWhichServersAreUsed(t *testing.T) {
	for _, c := range []struct {
		v    serverSettings
		says string
	}{
		{serverSettings{130000, "UTF8", "on", false}, ""},
		{serverSettings{180001, "UTF8", "on", false}, ""},
		{serverSettings{129999, "UTF8", "on", false}, "PostgreSQL 12, the oldest allowed is 13"},
		{serverSettings{150000, "SQL_ASCII", "on", false}, "its encoding is SQL_ASCII"},
		{serverSettings{150000, "UTF8", "off", false}, "fsync is off"},
		{serverSettings{150000, "UTF8", "on", true}, "choose the primary"},
	} {
		err := c.v.check()
		if (err == nil) != (c.says == "") || !strings.Contains(fmt.Sprint(err), c.says) || err != nil && !errors.Is(err, ErrPlace) {
			t.Errorf("%+v: %v", c.v, err)
		}
	}
}
