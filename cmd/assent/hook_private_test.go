package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/assent-dev/assent/internal/must"
)

// TestHookKeepsItsKeyAndTokenPrivate: they are in the user's configuration directory, for this user
// alone, and not beside the agent's file. A key beside the store, from an older version, stays in use.
func TestHookKeepsItsKeyAndTokenPrivate(t *testing.T) {
	config := t.TempDir()
	t.Setenv("XDG_CONFIG_HOME", config)
	flags := hookDir(t)
	dir := filepath.Dir(flags[1])
	doc := hookDocs()["claude-code"]
	answers(t, "claude-code", doc(callOf("Read", `{}`)), flags...)
	key := must.Get(filepath.Glob(config + "/assent/hooks/*/assent.key"))(t)
	if len(key) != 1 {
		t.Fatalf("keys: %q", key)
	}
	private := filepath.Dir(key[0])
	token := filepath.Join(private, "mcp.token")
	older := filepath.Join(dir, "mcp.token")
	must.Do(t, os.WriteFile(older, []byte("asn_old\n"), 0o600))
	if at := inboxOn(t, "hook", flags...); at[3] != token {
		t.Errorf("the inbox names %s, not %s", at[3], token)
	}
	for _, file := range []string{key[0], token} {
		if info := must.Get(os.Stat(file))(t); info.Mode().Perm() != 0o600 {
			t.Errorf("%s has mode %s", file, info.Mode())
		}
	}
	if info := must.Get(os.Stat(private))(t); info.Mode().Perm() != 0o700 {
		t.Errorf("%s has mode %s", private, info.Mode())
	}
	for _, name := range []string{"mcp.token", "assent.key", "assent.key.pub", "assent.key.watermark"} {
		if _, err := os.Stat(filepath.Join(dir, name)); err == nil {
			t.Errorf("%s is beside the agent's file", name)
		}
	}

	was := hookDir(t)
	answers(t, "claude-code", doc(callOf("Read", `{}`)), was...)
	for _, at := range must.Get(filepath.Glob(config + "/assent/hooks/*/assent.key*"))(t) {
		if filepath.Dir(at) != private {
			must.Do(t, os.Rename(at, filepath.Join(filepath.Dir(was[1]), filepath.Base(at))))
		}
	}
	answers(t, "claude-code", doc(toolCall{"Read", `{}`, "later"}), was...)
	if again := must.Get(filepath.Glob(config + "/assent/hooks/*/assent.key"))(t); len(again) != 1 {
		t.Errorf("another key was made: %q", again)
	}
}
