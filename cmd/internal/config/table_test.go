package config

import (
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"github.com/assent-dev/assent/cmd/internal/testfiles"
	"github.com/assent-dev/assent/internal/document"
	"github.com/assent-dev/assent/internal/jsonschema"
	"github.com/assent-dev/assent/internal/must"
	"github.com/assent-dev/assent/internal/yamldoc"
	"github.com/assent-dev/assent/mcp/config"
)

// TestContractSaysTheTable checks that docs/contracts/assent.md lists each field of the table, each
// flag next to its field, and each default.
func TestContractSaysTheTable(t *testing.T) {
	text := testfiles.Contract(t, "assent.md")
	for _, name := range []string{"serve", "gateway_file"} {
		for path, field := range schemaOf(name).Fields() {
			steps := strings.Split(path, ".")
			last := steps[len(steps)-1]
			if slices.Contains(steps[:len(steps)-1], "mcp") { // docs/contracts/mcp.md has these
				continue
			}
			if !regexp.MustCompile("`([a-z_]+\\.)*" + last + "`").MatchString(text) {
				t.Errorf("the field %s is not in docs/contracts/assent.md", path)
			}
			if field.Flag == "" || name != "serve" {
				continue
			}
			row := regexp.MustCompile("(?m)^\\| `--" + field.Flag + "[ `].*$").FindString(text)
			if !strings.Contains(row, "| `"+strings.TrimPrefix(path, "tenants.")+"` |") {
				t.Errorf("--%s has no row with its field %s in docs/contracts/assent.md: %s", field.Flag, path, row)
			}

			if field.Default != "" && !strings.Contains(row, "`"+field.Default+"`") {
				t.Errorf("--%s: the row does not say the default %s: %s", field.Flag, field.Default, row)
			}
		}
	}
}

// TestEveryFieldHasItsPlace checks that each field of the table is a field of the struct into which
// it is read.
func TestEveryFieldHasItsPlace(t *testing.T) {
	for name, into := range map[string]any{
		"serve":        &serveFile{},
		"gateway_file": &Gateway{},
		"user":         &UserConfig{},
	} {
		places(t, name, schemaOf(name), reflect.ValueOf(into).Elem())
	}
}

func places(t *testing.T, path string, s *document.Schema, v reflect.Value) {
	t.Helper()
	s = s.Resolved()
	if v.Kind() == reflect.Pointer {
		v = reflect.New(v.Type().Elem()).Elem()
	}
	if s.Items != nil && s.Items.Resolved().Type == "object" {
		places(t, path, s.Items, reflect.New(v.Type().Elem()).Elem())
		return
	}
	for key, property := range s.Properties {
		field := document.Field(v, key)
		if !field.IsValid() {
			t.Errorf("%s.%s has no place in %s", path, key, v.Type())
			continue
		}
		places(t, path+"."+key, property, field)
	}
}

// TestPublishedSchemas checks that they accept the contract's examples, and reject what the reader
// rejects.
func TestPublishedSchemas(t *testing.T) {
	text := testfiles.Contract(t, "assent.md")
	examples := regexp.MustCompile("(?s)```yaml\n(.*?)```").FindAllStringSubmatch(text, -1)
	for i, kind := range []string{"serve", "serve", "gateway"} {
		published, err := JSON(kind)
		must.Do(t, err)
		schema, err := jsonschema.Compile(kind, published)
		if err != nil {
			t.Fatalf("%s: %v\n%s", kind, err, published)
		}
		if failures := validate(t, schema, examples[i][1]); len(failures) > 0 {
			t.Errorf("example %d: %+v", i, failures)
		}
		for _, wrong := range []string{"lisen: x", "agents: {}", "drain: [x]", "on_broken_files: kep", "- x"} {
			if failures := validate(t, schema, wrong); len(failures) == 0 {
				t.Errorf("%s takes %q", kind, wrong)
			}
		}
	}
}

func validate(t *testing.T, schema *jsonschema.Schema, text string) []jsonschema.Failure {
	t.Helper()
	doc, findings := yamldoc.Parse("example.yaml", []byte(text), yamldoc.Limits{})
	if doc == nil {
		t.Fatal(findings)
	}

	return schema.Validate(doc.Root.Any())
}

// TestPublishedSchemaHasMCP checks that the schema accepts the service example in the contract of
// MCP, and rejects fields in the wrong place.
func TestPublishedSchemaHasMCP(t *testing.T) {
	published, err := JSON("serve")
	must.Do(t, err)
	schema, err := jsonschema.Compile("serve", published)
	must.Do(t, err)
	example := regexp.MustCompile("(?s)```yaml serve\n(.*?)```").FindStringSubmatch(testfiles.Contract(t, "mcp.md"))
	if failures := validate(t, schema, example[1]); len(failures) > 0 {
		t.Errorf("%+v", failures)
	}
	cfg, err := Reader{}.readServe(testfiles.Write(t, t.TempDir()+"/serve.yaml", example[1]))
	if err != nil || len(cfg.Tenants[0].MCP) != 1 || cfg.Tenants[0].MCP[0].Hold != 4*time.Minute {
		t.Errorf("%v: %+v", err, cfg)
	}
	for _, wrong := range []string{"callers: {name: a}", "store: x", "holt: 1s"} {
		if failures := validate(t, schema, example[1]+"    "+wrong+"\n"); len(failures) == 0 {
			t.Errorf("the schema takes %q", wrong)
		}
	}
}

// TestMCPNamesAreUnique checks names across tenants, because a gateway's address is unique in the
// whole server.
func TestMCPNamesAreUnique(t *testing.T) {
	one := []config.Served{{Name: "files"}}
	c := Serve{Tenants: []Tenant{{Name: "a", MCP: one}, {Name: "b", MCP: one}}}
	if err := c.checkMCP(); err == nil || !strings.Contains(err.Error(), "tenants a and b") {
		t.Error(err)
	}
}

// TestPinsOf checks the default locations: next to the store, or next to the key if the store is no
// file.
func TestPinsOf(t *testing.T) {
	for want, c := range map[string]Serve{
		"/var/s/mcp-files.pins.json": {Store: "/var/s/a.db", KeyFile: "/etc/k"},
		"/etc/mcp-files.pins.json":   {Store: "postgres://a/b", KeyFile: "/etc/k"},
	} {
		if got := c.PinsOf(config.Served{Name: "files"}); got != want {
			t.Errorf("%s, want %s", got, want)
		}
		if got := c.PinsOf(config.Served{Name: "files", Pins: "/p"}); got != "/p" {
			t.Error(got)
		}
	}
}

func TestPinsFollowTheStore(t *testing.T) {
	for store, want := range map[string]string{
		"/s/mcp.db": "/k/mcp.pins.json", "/s/desk.db": "/k/desk.pins.json", "postgres://a/b": "/k/mcp.pins.json",
	} {
		c := MCP{KeyFile: "/k/assent.key"}
		if c.Store = store; c.Pins() != want {
			t.Errorf("%s: %s", store, c.Pins())
		}
	}
}

// TestConstantsAgreeWithTheTable checks that commands that work on a store have the same defaults
// as the service.
func TestConstantsAgreeWithTheTable(t *testing.T) {
	fields := schemaOf("serve").Fields()
	if fields["store"].Default != DefaultStore || fields["tenant"].Default != DefaultTenant {
		t.Errorf("the table says %s and %s", fields["store"].Default, fields["tenant"].Default)
	}
}

// TestFlagsGoBeforeTheFile checks flags of the server and of its only tenant, and that invalid
// values are rejected.
func TestFlagsGoBeforeTheFile(t *testing.T) {
	dir := t.TempDir()
	one := testfiles.Write(
		t,
		dir+"/one.yaml",
		"listen: 127.0.0.1:1\ndrain: 3s\nagents: a\ntenants: []\noidc: {issuer: https://a, client_id: c}\n",
	)
	for _, tt := range []struct {
		args []string
		want func(Serve) bool
		err  string
	}{
		{
			[]string{"--listen", "127.0.0.1:2", "--agents", "x", "--agents", "y"},
			func(c Serve) bool {
				return c.Listen == "127.0.0.1:2" && reflect.DeepEqual(c.Tenants[0].Agents, []string{"x", "y"}) &&
					c.Drain.String() == "3s"
			},
			"",
		},
		{
			[]string{
				"--tenant",
				"acme",
				"--admin-group",
				"ops",
				"--oidc-client-id",
				"d",
				"--oidc-scopes",
				"a,b",
				"--dev",
			},
			func(c Serve) bool {
				o := c.Tenants[0].OIDC
				return c.Dev && c.Tenants[0].Name == "acme" && c.Tenants[0].Admins.Group == "ops" &&
					o.Issuer == "https://a" &&
					o.ClientID == "d" && reflect.DeepEqual(o.Scopes, []string{"a", "b"})
			},
			"",
		},
		{[]string{"--drain", "9s"}, func(c Serve) bool {
			return c.Drain.String() == "9s" && c.Tenants[0].Name == DefaultTenant
		}, ""},
		{
			[]string{"--log-level", "loud"},
			nil,
			`--log-level: "loud" is not known here, expected one of debug, info, warn, error`,
		},
		{[]string{"--host", "https://x"}, nil, "such as assent.internal"},
	} {
		cmd := &cobra.Command{}
		f := NewServeFlags(cmd)
		f.File = one
		must.Do(t, cmd.ParseFlags(tt.args))
		cfg, err := Reader{}.Gather(f)
		switch {
		case tt.err == "" && (err != nil || !tt.want(cfg)):
			t.Errorf("%v: %v %+v", tt.args, err, cfg)
		case tt.err != "" && (err == nil || !strings.Contains(err.Error(), tt.err)):
			t.Errorf("%v: %v", tt.args, err)
		}
	}
}
