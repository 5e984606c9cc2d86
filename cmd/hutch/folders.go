package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/hutch-run/hutch/runtime/owner"
)

// loadJoined is loadConfig for a command that looks at what there is: where nobody
// names folders or a policy, it is those of the hutch that runs on the state folder,
// whatever folder the command is typed in.
func loadJoined(c *cli.Context, p program) (Config, error) {
	cfg, err := loadConfig(c, p)
	if err == nil {
		cfg.join(c.Context)
	}
	return cfg, err
}

// join follows the owner of the state folder, if there is one. One that does not
// answer is met by who needs it.
func (cfg *Config) join(ctx context.Context) {
	if c, err := owner.Dial(ctx, cfg.State); err == nil && c.Owner.Kind != ownerTools {
		cfg.follow(c.Owner)
	}
}

// follow takes tool folders and policy from an owner, where nobody named others.
func (cfg *Config) follow(who owner.Info) {
	if cfg.toolsFrom == "" && len(who.Tools) > 0 && !slices.Equal(who.Tools, cfg.realTools()) {
		cfg.Tools, cfg.toolsFrom, cfg.followed = who.Tools, who.String(), true
	}
	if cfg.policyFrom == "" && who.Policy != "" {
		cfg.Policy = who.Policy
	}
}

// sayFollowed tells who has a folder for modules before them that it is another one
// that counts.
func (cfg Config) sayFollowed(say *voice) {
	if cfg.followed && isFolder(defaultTools) {
		say.line("these are the tools of %s, in %s; --tools %s names the folder here", cfg.toolsFrom, strings.Join(cfg.Tools, ", "), defaultTools)
	}
}

// checkFolders refuses a tool folder that is something else, and returns those
// that are missing.
func (cfg Config) checkFolders() (missing []string, err error) {
	for _, dir := range cfg.Tools {
		info, err := os.Stat(dir)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			missing = append(missing, dir)
		case err == nil && !info.IsDir():
			return nil, usagef("%s %s: not a folder", cfg.toolsFrom, quoted(dir)).
				withHint("name the folder that it is in: %s", shellWord(filepath.Dir(dir)))
		}
	}
	return missing, nil
}

// readableFolders is checkFolders for a command that looks once: what is
// missing is said, because an empty list would not say it.
func (cfg Config) readableFolders(say *voice) error {
	missing, err := cfg.checkFolders()
	if err != nil || cfg.toolsFrom == "" {
		return err
	}
	rest := ""
	if len(missing) == len(cfg.Tools) {
		rest = ": only the tools that come with hutch are there"
	}
	for _, dir := range missing {
		say.line("tool folder %s does not exist%s", quoted(dir), rest)
	}
	return nil
}

// watchableFolders is checkFolders for a command that goes on looking.
func (cfg Config) watchableFolders(say *voice) error {
	missing, err := cfg.checkFolders()
	for _, dir := range missing {
		say.line("tool folder %s does not exist yet", quoted(dir))
	}
	return err
}

// openFolders is watchableFolders that makes ./tools if nobody named another
// folder, so that there is one to drop a file into.
func (cfg Config) openFolders(say *voice) error {
	if cfg.toolsFrom != "" {
		return cfg.watchableFolders(say)
	}
	err := os.Mkdir(defaultTools, 0o755)
	switch {
	case err == nil:
		say.line("made the folder %s for modules", defaultTools)
	case !errors.Is(err, fs.ErrExist):
		return hinted(fmt.Errorf("tools: %w", err), "name a folder with --tools DIR")
	}
	return cfg.watchableFolders(say)
}

// folderOf returns the tool folder that a module file lies in, empty if it lies in none.
func (cfg Config) folderOf(file string) string {
	file, err := filepath.Abs(file)
	if err != nil {
		return ""
	}
	lies := realPath(filepath.Dir(file))
	for i, dir := range cfg.realTools() {
		if dir == lies {
			return cfg.Tools[i]
		}
	}
	return ""
}

// lookedIn names the folders, for who did not find something in them.
func (cfg Config) lookedIn() string {
	var all []string
	for _, dir := range cfg.Tools {
		if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
			dir += " (does not exist)"
		}
		all = append(all, dir)
	}
	return "looked in " + strings.Join(all, ", ") + " and among the tools that come with hutch"
}
