package main

import (
	"fmt"

	"github.com/hutch-run/hutch/runtime/registry"
	"github.com/urfave/cli/v2"
)

func toolsReleaseCommand(p program) *cli.Command {
	return &cli.Command{
		Name:      "release",
		Usage:     "let a module run again that was quarantined",
		UsageText: "hutch tools release NAME [flags]",
		Flags:     someFlags(flagState, flagConfig),
		Action:    func(c *cli.Context) error { return runToolsRelease(c, p) },
		Description: `A module that keeps taking its workers down is quarantined: held, until its file is replaced or somebody
releases it. NAME is its file name, or sha256: and its digest. A hutch that runs notices within seconds.

examples:
  $ hutch tools release text.wasm`,
	}
}

func runToolsRelease(c *cli.Context, p program) error {
	if err := wantArgs(c, 1, 1, "the NAME of a module"); err != nil {
		return err
	}
	cfg, err := loadConfig(c, p)
	if err != nil {
		return err
	}
	st, err := openState(cfg.State)
	if err != nil {
		return err
	}
	name := c.Args().First()
	released, err := registry.Release(st.quarantine(), name)
	if err != nil {
		return fmt.Errorf("release %s: %w", quoted(name), err)
	}
	if len(released) == 0 {
		like, err := likeQuarantined(st.quarantine(), name)
		if err != nil {
			return fmt.Errorf("release %s: %w", quoted(name), err)
		}
		if like != "" {
			return hinted(fmt.Errorf("release %s: no such module is quarantined", quoted(name)), "did you mean %s?", shellWord(like))
		}
		return hinted(fmt.Errorf("release %s: no such module is quarantined", quoted(name)), "hutch tools list")
	}
	for _, r := range released {
		if _, err := fmt.Fprintf(c.App.Writer, "released %s (sha256:%.12s)\n", oneLine(r.Module), r.Digest); err != nil {
			return err
		}
	}
	return nil
}

// likeQuarantined returns which quarantined module name may have been meant for.
func likeQuarantined(dir, name string) (string, error) {
	all, err := registry.QuarantinedIn(dir)
	var names []string
	for _, q := range all {
		if q.Module == name+moduleSuffix {
			return q.Module, nil
		}
		if q.Module != "" {
			names = append(names, q.Module)
		}
	}
	return nearest(names, name, 2), err
}
