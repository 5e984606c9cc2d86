package registry

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/hutch-run/hutch/protocol/rawjson"
	"github.com/hutch-run/hutch/protocol/tool"
	"github.com/hutch-run/hutch/runtime/dialect"
	"github.com/hutch-run/hutch/runtime/plainfile"
)

const (
	// cacheFormat changes with the shape of a record, and whenever pre-check,
	// dialects or the checks of descriptions come to other conclusions.
	cacheFormat = 3
	// cacheTTL is how long a record is kept that nobody asked for.
	cacheTTL = 30 * 24 * time.Hour
	// maxRecords is how many are kept, besides those of modules that are wanted.
	maxRecords = 2000
	// maxRecord bounds what is read back: a description, escaped at worst.
	maxRecord = 4 << 20
)

// descriptions keeps what modules said about themselves, one file a digest. A
// record that is damaged, of another build or not of our making is as good as
// none: everything in it can be worked out again.
type descriptions struct {
	dir   string // "" keeps nothing
	maker string
}

// A record is one file of the cache.
type record struct {
	Sum  string          `json:"sum"` // SHA-256 of Body
	Body json.RawMessage `json:"body"`
}

type recordBody struct {
	Format      int             `json:"format"`
	Maker       string          `json:"maker"`
	Digest      string          `json:"digest"`
	Code        string          `json:"code,omitempty"`
	Refused     string          `json:"refused,omitempty"` // why; the rest is empty then
	Kind        dialect.Kind    `json:"kind,omitempty"`
	Size        int64           `json:"size,omitempty"`
	Imports     []string        `json:"imports,omitempty"`
	Linked      tool.Requests   `json:"linked,omitempty"` // what imports and description ask for
	Description json.RawMessage `json:"description,omitempty"`
	Confirmed   bool            `json:"confirmed,omitempty"`
	// Warnings of the schemas, by tool: finding them anew means compiling.
	Warnings map[string][]string `json:"warnings,omitempty"`
}

// cached returns the verdict that an earlier run came to.
func (r *Registry) cached(digest string) (verdict, bool) {
	body, err := r.cache.read(digest)
	if err != nil {
		if !errors.Is(err, os.ErrNotExist) {
			r.o.Logger.Info("a cached description is not used", "digest", digest, "error", err)
		}
		return verdict{}, false
	}
	if body.Refused != "" {
		return verdict{err: errors.New(body.Refused)}, true
	}
	def := &definition{
		digest: digest, code: body.Code, size: body.Size, kind: body.Kind, imports: body.Imports,
		requests: body.Linked, confirming: make(chan struct{}, 1),
	}
	def.confirmed.Store(body.Confirmed)
	if err := def.define(body.Kind, body.Description); err != nil {
		r.o.Logger.Info("a cached description is not used", "digest", digest, "error", err)
		return verdict{}, false
	}
	for _, t := range def.tools {
		if w := body.Warnings[t.own.Name]; w != nil {
			t.warnings = w
		}
	}
	return verdict{def: def}, true
}

// remember writes a definition down. Failing to costs the next start time, no more.
func (r *Registry) remember(d *definition) {
	said, err := rawjson.Marshal(d.exported)
	if err != nil {
		r.o.Logger.Warn("a description is not kept", "digest", d.digest, "error", err)
		return
	}
	warnings := map[string][]string{}
	for _, t := range d.tools {
		warnings[t.own.Name] = t.warnings
	}
	r.keep(recordBody{
		Digest: d.digest, Code: d.code, Kind: d.kind, Size: d.size, Imports: d.imports, Linked: d.requests,
		Description: said, Confirmed: d.confirmed.Load(), Warnings: warnings,
	})
}

func (r *Registry) rememberRefusal(digest string, why error) {
	r.keep(recordBody{Digest: digest, Refused: why.Error()})
}

func (r *Registry) keep(body recordBody) {
	if err := r.cache.write(body); err != nil {
		r.o.Logger.Warn("a description is not kept", "digest", body.Digest, "error", err)
	}
}

func (d *descriptions) path(digest string) string { return filepath.Join(d.dir, digest+".json") }

// read returns a record that is exactly what this build wrote for this digest.
func (d *descriptions) read(digest string) (body recordBody, err error) {
	if d.dir == "" {
		return body, os.ErrNotExist
	}
	raw, err := plainfile.Read(d.path(digest), maxRecord)
	if err != nil {
		return body, err
	}
	var rec record
	if err := strictJSON(raw, &rec); err != nil {
		return body, err
	}
	if sum := sha256.Sum256(rec.Body); hex.EncodeToString(sum[:]) != rec.Sum {
		return body, errors.New("checksum does not match")
	}
	if err := strictJSON(rec.Body, &body); err != nil {
		return body, err
	}
	if body.Format != cacheFormat || body.Maker != d.maker {
		return body, fmt.Errorf("format %d of %.40q, this is %d of %.40q", body.Format, body.Maker, cacheFormat, d.maker)
	}
	if body.Digest != digest {
		return body, fmt.Errorf("it is about sha256:%.12s", body.Digest)
	}
	now := time.Now()
	return body, os.Chtimes(d.path(digest), now, now)
}

func (d *descriptions) write(body recordBody) error {
	if d.dir == "" {
		return nil
	}
	body.Format, body.Maker = cacheFormat, d.maker
	inner, err := rawjson.Marshal(body)
	if err != nil {
		return err
	}
	sum := sha256.Sum256(inner)
	raw, err := rawjson.Marshal(record{Sum: hex.EncodeToString(sum[:]), Body: inner})
	if err != nil {
		return err
	}
	return plainfile.Replace(d.path(body.Digest), recordTemp, raw)
}

// strictJSON reads exactly what encoding/json writes for v, and nothing else.
func strictJSON(raw []byte, v any) error {
	if err := rawjson.Check(raw, rawjson.MaxDepth+8); err != nil {
		return err
	}
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.DisallowUnknownFields()
	return dec.Decode(v)
}

// recordTemp begins the names of records that are being written.
const recordTemp = "record-"
