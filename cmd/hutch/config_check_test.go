package main

import (
	"strings"
	"testing"
)

// Help has every setting with its default, what is allowed, an example, and all ways
// to give it; and what it shows as a file is one.
func TestHelpHasEverySetting(t *testing.T) {
	cmd := configCommand(scriptProgram())
	help := settingsHelp()
	if !strings.Contains(cmd.Description, help) {
		t.Error("the help of config lacks the settings")
	}
	all := append(settings(), agentSettings("helper")...)
	for _, s := range all {
		ways := s.env + s.flag
		if strings.HasPrefix(s.key, keyAgents) { // which stand in the file alone
			ways = "file"
		}
		if s.means == "" || s.allowed == "" || s.fallback == "" || ways == "" || s.example == "" && s.apart == "" {
			t.Errorf("%s says too little: %+v", s.key, s)
		}
		for _, part := range []string{s.means, s.allowed, "default: " + s.fallback, s.env, s.flag, s.example} {
			if !strings.Contains(help, part) {
				t.Errorf("help lacks %q of %s", part, s.key)
			}
		}
	}
	cfg, err := readConfig(t, help+"\n", nil)
	if err != nil {
		t.Fatalf("what help shows is no configuration: %v", err)
	}
	for _, s := range all {
		if g := cfg.given[s.key]; s.apart == "" && s.instead == "" && g.source != sourceFile {
			t.Errorf("the file that help shows lacks %s", s.key)
		}
	}
}
