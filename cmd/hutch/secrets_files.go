package main

import (
	"log/slog"

	"github.com/hutch-run/hutch/host/secrets"
)

// secretOptions says where the vault of this configuration is.
func (cfg Config) secretOptions(p program, log *slog.Logger) secrets.Options {
	o := secrets.Options{Environ: p.secretEnviron(), File: cfg.Secrets.File, Logger: log}
	if cfg.Secrets.opened() {
		o.AgeFile, o.AgeIdentity, o.Passphrase = cfg.Secrets.AgeFile, cfg.Secrets.AgeIdentity, cfg.Secrets.Passphrase
	}
	return o
}

// openVault opens the secrets. A file that cannot be used leaves nothing of it, and
// is told; the tools that need none go on.
func openVault(cfg Config, p program, log *slog.Logger) (*secrets.Vault, error) {
	vault, err := secrets.Open(cfg.secretOptions(p, log))
	if vault == nil {
		return nil, usagef("%w", err)
	}
	if err != nil {
		log.Warn("secrets are not used", "error", err)
	}
	if cfg.sealed() {
		log.Warn("encrypted secrets are not used: nothing opens them", "file", cfg.Secrets.AgeFile, "setting", keyIdentity)
	}
	return vault, nil
}

// sealed reports whether there are encrypted secrets that nothing opens.
func (cfg Config) sealed() bool {
	if cfg.Secrets.opened() || cfg.Secrets.AgeFile == "" {
		return false
	}
	return isThere(cfg.Secrets.AgeFile)
}

// checkSecretPlaces refuses secrets, and what opens them, in a folder that modules
// are dropped into: whoever offers tools could put others in their place.
func (cfg Config) checkSecretPlaces() (wrong []error) {
	for _, f := range []struct{ key, path string }{
		{keySecrets, cfg.Secrets.File}, {keyAgeFile, cfg.Secrets.AgeFile}, {keyIdentity, cfg.Secrets.AgeIdentity}, {keyStorePassword, cfg.Store.PasswordFile},
	} {
		if f.path == "" {
			continue
		}
		dir, err := cfg.toolFolderOf(f.path)
		if err == nil && dir != "" {
			err = usagef("%s %s: lies in the tool folder %s, where others put files", f.key, quoted(f.path), quoted(dir)).
				withHint("move it elsewhere, such as to the state folder")
		}
		if err != nil {
			wrong = append(wrong, err)
		}
	}
	return wrong
}
