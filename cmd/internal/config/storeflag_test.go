package config

import (
	"bytes"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/assent-dev/assent/cmd/internal/term"
	"github.com/assent-dev/assent/cmd/internal/testfiles"
	"github.com/assent-dev/assent/internal/must"
)

// TestWhereTheStoreIs checks the precedence: a flag, the environment, the configuration, the
// default. It also checks that no password has to be on a command line.
func TestWhereTheStoreIs(t *testing.T) {
	file := testfiles.Write(t, filepath.Join(t.TempDir(), "store.url"), " postgres://me:hunter2@db/assent\n")
	for _, tt := range []struct {
		args []string
		env  string
		want string
	}{
		{nil, "", "standard.db"}, {nil, "env.db", "env.db"}, {[]string{"--store", "flag.db"}, "env.db", "flag.db"},
		{[]string{"--store-file", file}, "env.db", "postgres://me:hunter2@db/assent"},
	} {
		a := Reader{Streams: term.Streams{Env: func(name string) string {
			return map[string]string{"ASSENT_STORE": tt.env}[name]
		}}}
		var f StoreFlags
		var got string
		cmd := &cobra.Command{
			Use: "x",
			RunE: func(cmd *cobra.Command, _ []string) error {
				c, err := f.Locate(a, cmd)
				got = c.Where
				return err
			},
		}
		StoreFlag(cmd, &f, "standard.db", "usage")
		cmd.SetArgs(tt.args)
		if err := cmd.Execute(); err != nil || got != tt.want {
			t.Errorf("%v with %q: %q, %v", tt.args, tt.env, got, err)
		}
	}
}

// TestAServiceReadsItsStoreFromAFile checks that the configuration may name the file, and that the
// environment takes precedence.
func TestAServiceReadsItsStoreFromAFile(t *testing.T) {
	dir := t.TempDir()
	testfiles.Write(t, filepath.Join(dir, "store.url"), "postgres://me:hunter2@db/assent")
	config := testfiles.Write(
		t,
		filepath.Join(dir, "serve.yaml"),
		"store_file: store.url\nkey: k\nagents: .\npeople: people.yaml\n",
	)
	for env, want := range map[string]string{"": "postgres://me:hunter2@db/assent", "env.db": "env.db"} {
		var errs bytes.Buffer
		a := Reader{Streams: term.Streams{Err: &errs,
			Env: func(name string) string { return map[string]string{"ASSENT_STORE": env}[name] }}}
		f := NewServeFlags(&cobra.Command{})
		f.File = config
		cfg, err := a.Serve(f)
		if err != nil || cfg.Store != want {
			t.Errorf("%q: %q, %v\n%s", env, cfg.Store, err, errs.String())
		}
	}
}

// TestAddressesToListenAt checks that an invalid address is reported with a valid example.
func TestAddressesToListenAt(t *testing.T) {
	for _, text := range []string{"listen: 7717", "listen: localhost", "metrics_listen: 9117", "listen: []"} {
		var errs bytes.Buffer
		a := Reader{Streams: term.Streams{Err: &errs}}
		config := testfiles.Write(t, filepath.Join(t.TempDir(), "serve.yaml"), text+"\nagents: .\n")
		if _, err := a.readServe(config); err == nil || !strings.Contains(errs.String(), "127.0.0.1:7717") {
			t.Errorf("%s: %v\n%s", text, err, errs.String())
		}
	}

	for address, ok := range map[string]bool{
		"7717":        false,
		"localhost":   false,
		"":            false,
		"[::1]:":      false,
		":7717":       true,
		"127.0.0.1:0": true,
		"[::1]:7717":  true,
	} {
		cmd := &cobra.Command{}
		f := NewServeFlags(cmd)
		must.Do(t, cmd.Flags().Set("listen", address))
		var cfg Serve
		err := f.Put(&cfg)
		if (err == nil) != ok || err != nil && !strings.Contains(err.Error(), "127.0.0.1:7717") {
			t.Errorf("%q: %v", address, err)
		}
	}
}
