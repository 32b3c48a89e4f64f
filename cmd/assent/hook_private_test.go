package main

import (
	"crypto/rand"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/assent-dev/assent/approval/ledger"
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

// TestHookBlocksWithAnotherKey: a hook reads the public key from its file. A key and a public key
// that don't belong together, or to the store, block the call with the reason.
func TestHookBlocksWithAnotherKey(t *testing.T) {
	doc := hookDocs()["claude-code"](callOf("Read", `{"path":"/a"}`))
	_, secret, err := ledger.GenerateKey("host", rand.Reader)
	must.Do(t, err)
	fresh, err := ledger.ParseSigner(secret)
	must.Do(t, err)
	for name, c := range map[string]struct {
		secret func(old string) string
		public string
		store  bool // a store exists before
		says   string
	}{
		"a damaged secret":     {damaged, "", true, "not a secret key"},
		"damaged, a new store": {damaged, "", false, "not a secret key"},
		"another public key":   {nil, fresh.PublicKey(), true, "does not belong to the key beside it"},
		"another pair":         {func(string) string { return secret }, fresh.PublicKey(), true, "signed by"},
		"no public key":        {nil, "-", true, ""},
		"the right pair":       {nil, "", true, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("XDG_CONFIG_HOME", t.TempDir())
			flags := hookDir(t)
			if h := hookRuns(t, "claude-code", doc, flags...); h.code != 0 {
				t.Fatalf("%+v", h)
			}
			key := must.Get(filepath.Glob(os.Getenv("XDG_CONFIG_HOME") + "/assent/hooks/*/assent.key"))(t)[0]
			if c.secret != nil {
				old := must.Get(os.ReadFile(key))(t)
				must.Do(t, os.WriteFile(key, []byte(c.secret(string(old))), 0o600))
			}
			if c.public == "-" {
				must.Do(t, os.Remove(key+".pub"))
			} else if c.public != "" {
				must.Do(t, os.WriteFile(key+".pub", []byte(c.public+"\n"), 0o600))
			}
			if !c.store {
				for _, ending := range []string{"", "-wal", "-shm"} {
					must.Do(t, os.Remove(filepath.Join(filepath.Dir(flags[1]), "hook.db"+ending)))
				}
			}
			h := hookRuns(t, "claude-code", doc, flags...)
			if (h.code == 2) != (c.says != "") || !strings.Contains(h.err, c.says) {
				t.Errorf("%+v, expected %q", h, c.says)
			}
		})
	}
}

// damaged changes one letter of the encoded part of a secret.
func damaged(secret string) string {
	at := len(secret) - 10
	letter := byte('A')
	if secret[at] == 'A' {
		letter = 'B'
	}

	return secret[:at] + string(letter) + secret[at+1:]
}
