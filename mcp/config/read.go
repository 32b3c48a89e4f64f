package config

import (
	_ "embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/assent-dev/assent/diag"
	"github.com/assent-dev/assent/internal/document"
	"github.com/assent-dev/assent/internal/pattern"
	"github.com/assent-dev/assent/internal/yamldoc"
)

// table is the JSON Schema of the configuration, which defines every field.
//
//go:embed config.schema.json
var table []byte

// schemaURL is the address of the published schema.
const schemaURL = "https://github.com/assent-dev/assent/schema/mcp.schema.json"

// rule is the id of all findings.
const rule = "config-invalid"

// JSON returns the JSON Schema of the file, for editors and other
// validators.
func JSON() ([]byte, error) { return document.Publish(table, "gateway", schemaURL) }

// Read parses the text of a configuration. Its paths are relative to the directory of the file. If
// there are findings, the configuration can't be used.
func Read(file string, src []byte) (Gateway, []diag.Finding) {
	var cfg Gateway
	dir := filepath.Dir(file)
	doc, findings := yamldoc.Parse(file, src, yamldoc.Limits{})
	d := decoder(dir)
	if doc != nil {
		d.Decode(doc.Root, schema("gateway"), &cfg)
	}
	if cfg.Store == "" && cfg.StoreFile == "" {
		cfg.Store = filepath.Join(dir, storeName)
	}
	d.Findings = append(yamldoc.Stopping(findings), d.Findings...)
	diag.Stamp(d.Findings, file)

	return cfg, d.Findings
}

// Program returns the configuration of a gateway for one program without a file, with defaults for
// all other fields. Paths are used as given. Other files that it needs are in the directory of the
// agent's file.
//
// The defaults are written here because each hook uses them, and reading them from the table takes
// half a millisecond. A test compares them with the table.
func Program(agent, alias string, argv []string) Gateway {
	return Gateway{
		Agent:         agent,
		OnBrokenFiles: "keep",
		Undeclared:    "deny",
		Offline:       "deny",
		Store:         filepath.Join(filepath.Dir(agent), storeName),
		PermitAge:     time.Hour,
		Grace:         5 * time.Second,
		Works: Works{
			Within:      24 * time.Hour,
			RunWithin:   10 * time.Minute,
			Prefix:      "auto",
			NameLimit:   64,
			Link:        "off",
			KeepResults: 10 * time.Minute,
			MaxPending:  100,
			Recheck:     time.Minute,
			Upstream: []Upstream{{
				Alias:        alias,
				Command:      argv[0],
				Args:         argv[1:],
				Era:          "auto",
				Pins:         "trust_first",
				OnChange:     "hold",
				OnText:       "strip",
				Elicitation:  "relay",
				Sampling:     "off",
				ClientRoots:  "off",
				Instructions: "drop",
			}},
		},
	}
}

// storeName is the default file of the embedded store.
const storeName = "mcp.db"

func schema(name string) *document.Schema { return tables().Def(name) }

// tables is the table, read on first use.
var tables = sync.OnceValue(func() *document.Schema {
	s, err := document.Load(table)
	if err != nil {
		panic(err) // the table is compiled in, and read by tests
	}

	return s
})

// ReadEnv reads the file of an upstream's env_file and returns its variables. It returns an error
// if others may read the file, or if it has anything but names with texts; the error never contains
// a value.
func ReadEnv(file string) (map[string]string, error) {
	src, err := readSecret(file)
	if err != nil {
		return nil, err
	}
	doc, findings := yamldoc.Parse(file, src, yamldoc.Limits{})
	if stops := yamldoc.Stopping(findings); len(stops) > 0 {
		at := stops[0].Range.Start
		return nil, fmt.Errorf(
			"%s:%d:%d: this can't be read: expected lines NAME: \"VALUE\"",
			file,
			at.Line,
			at.Column,
		)
	}

	out := map[string]string{}
	if doc.Root.Kind != yamldoc.Mapping {
		return nil, fmt.Errorf("%s:1:1: expected lines NAME: \"VALUE\"", file)
	}
	for _, f := range doc.Root.Fields {
		at := f.Value.Range.Start
		if f.Value.Kind != yamldoc.String || !IsVariable(f.Key.Text) {
			return nil, fmt.Errorf(
				"%s:%d:%d: expected the name of a variable and a text in quotes",
				file,
				at.Line,
				at.Column,
			)
		}

		out[f.Key.Text] = f.Value.Text
	}

	return out, nil
}

// dotenvLine is a line of a dotenv file: NAME=VALUE, perhaps after export.
var dotenvLine = pattern.Of(`^\s*(?:export\s+)?([A-Za-z_][A-Za-z0-9_]*)\s*=\s*(.*?)\s*$`)

// ReadDotenv reads the file of an upstream's dotenv_file and returns its variables. Lines in
// another form are skipped, as the clients that use such files do. A missing file has no variables.
func ReadDotenv(file string) (map[string]string, error) {
	text, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	out := map[string]string{}
	for line := range strings.Lines(strings.TrimPrefix(string(text), "\ufeff")) {
		if found := dotenvLine().FindStringSubmatch(strings.TrimRight(line, "\r\n")); found != nil {
			out[found[1]] = dotenvValue(found[2])
		}
	}
	return out, err
}

// dotenvValue returns a value without its quotes or its comment.
func dotenvValue(text string) string {
	for _, quote := range []string{`"`, "'", "`"} {
		rest, opens := strings.CutPrefix(text, quote)
		inner, _, closes := strings.Cut(rest, quote)
		switch {
		case !opens || !closes:
		case quote == `"`:
			return strings.NewReplacer(`\n`, "\n", `\r`, "\r").Replace(inner)
		default:
			return inner
		}
	}
	text, _, _ = strings.Cut(text, "#")
	return strings.TrimSpace(text)
}

// readSecret reads a file that only its owner may read. Windows has no such permission bits, and
// reports every file as readable by all.
func readSecret(file string) ([]byte, error) {
	info, err := os.Stat(file)
	if err != nil {
		return nil, err
	}
	if open := info.Mode().Perm() & 0o077; open != 0 && os.PathSeparator == '/' {
		return nil, fmt.Errorf(
			"%s: others may read it (mode %04o): expected mode 0600, as by chmod 600: %w",
			file,
			info.Mode().Perm(),
			fs.ErrPermission,
		)
	}

	return os.ReadFile(file)
}
