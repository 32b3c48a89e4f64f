package config

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/assent-dev/assent/diag"
	"github.com/assent-dev/assent/internal/document"
	"github.com/assent-dev/assent/internal/must"
	"github.com/assent-dev/assent/internal/yamldoc"
)

const contract = "../../docs/contracts/mcp.md"

// TestContractExamples: the configurations of the contract can be read, and some of their fields
// have the documented meaning.
func TestContractExamples(t *testing.T) {
	text := must.Get(os.ReadFile(contract))(t)
	examples := regexp.MustCompile("(?s)```yaml mcp\n(.*?)```").FindAllSubmatch(text, -1)
	if len(examples) != 3 {
		t.Fatalf("the contract shows %d configurations", len(examples))
	}
	var all []Gateway
	for _, example := range examples {
		cfg, findings := Read("/etc/assent/mcp.yaml", example[1])
		if len(findings) > 0 {
			t.Fatalf("%+v", findings)
		}
		all = append(all, cfg)
	}

	first, second := all[0], all[1]
	third := all[2]
	wants(t, map[string][2]any{
		"agent":     {first.Agent, "/etc/assent/agent.agf.yaml"},
		"policies":  {first.Policies, []string{"/etc/assent/policies"}},
		"store":     {first.Store, "/etc/assent/mcp.db"},
		"command":   {first.Upstream[0].Command, "npx"},
		"env file":  {first.Upstream[0].EnvFile, "/etc/assent/secrets/files.env.yaml"},
		"headers":   {first.Upstream[1].HeaderFiles["X-Team"], "/etc/assent/secrets/tracker.X-Team"},
		"variables": {first.Upstream[0].Variables(), []string{"LOG_LEVEL", "SSH_AUTH_SOCK"}},
		"hold":      {second.Callers[0].Hold, 4 * time.Minute},
		"preset":    {second.Callers[1].Hold, 4 * time.Minute},
		"alone":     {len(second.Upstream), 1},
		"issuer":    {third.IssuerOf(third.Callers[0]), "https://login.example.com"},
		"no issuer": {second.IssuerOf(second.Callers[0]), ""},
		"scopes":    {third.OAuth.Scopes, []string{"mcp:tools"}},
		"claim":     {third.OAuth.Claim, "sub"},
		"secret":    {third.Upstream[0].OAuth.SecretFile, "/etc/assent/secrets/tracker.secret"},
	})
}

func wants(t *testing.T, all map[string][2]any) {
	t.Helper()
	for what, pair := range all {
		if !reflect.DeepEqual(pair[0], pair[1]) {
			t.Errorf("%s: %v, want %v", what, pair[0], pair[1])
		}
	}
}

const least = "agent: a.agf.yaml\nupstream: {alias: a, command: b}\n"

// TestDefaults: missing fields have the defaults of the contract.
func TestDefaults(t *testing.T) {
	cfg, findings := Read("mcp.yaml", []byte(least+"callers: {name: me}\n"))
	if len(findings) > 0 {
		t.Fatalf("%+v", findings)
	}
	u := cfg.Upstream[0]
	wants(t, map[string][2]any{
		"on_broken_files": {cfg.OnBrokenFiles, "keep"},
		"undeclared":      {cfg.Undeclared, "deny"},
		"offline":         {cfg.Offline, "deny"},
		"within":          {cfg.Within, 24 * time.Hour},
		"run_within":      {cfg.RunWithin, 10 * time.Minute},
		"permit_age":      {cfg.PermitAge, time.Hour},
		"prefix":          {cfg.Prefix, "auto"},
		"name_limit":      {cfg.NameLimit, 64},
		"link":            {cfg.Link, "off"},
		"keep_results":    {cfg.KeepResults, 10 * time.Minute},
		"max_pending":     {cfg.MaxPending, 100},
		"recheck":         {cfg.Recheck, time.Minute},
		"grace":           {cfg.Grace, 5 * time.Second},
		"hold":            {cfg.Callers[0].Hold, 45 * time.Second},
		"era":             {u.Era, "auto"},
		"pins":            {u.Pins, "trust_first"},
		"on_change":       {u.OnChange, "hold"},
		"on_text":         {u.OnText, "strip"},
		"elicitation":     {u.Elicitation, "relay"},
		"sampling":        {u.Sampling, "off"},
		"instructions":    {u.Instructions, "drop"},
	})
}

func with(more string) string { return least + more }

func program(more string) string {
	return "agent: a\nupstream:\n  - alias: a\n    command: b\n" + more
}

func remote(more string) string {
	return "agent: a\nupstream:\n  - alias: a\n    url: https://a.example\n" + more
}

// issued is the configuration of a gateway that listens and accepts tokens of an issuer.
const issued = "listen: 127.0.0.1:1\noauth: {issuers: {issuer: https://i.example}}\n"

// TestRefusals: a configuration that can't work is refused with the place and a suggestion.
func TestRefusals(t *testing.T) {
	refused(t, map[string]string{
		"store: a\n":                                                         `1:1 this configuration of assent mcp gateway lacks agent and upstream`,
		with("upstreem: []\n"):                                               `3:1 no field is called "upstreem" here (nearest: upstream)`,
		with("agent: b\n"):                                                   `3:1 `,
		with("store: a\nstore_file: b\n"):                                    `4:1 store and store_file say the same`,
		with("undeclared: allow\n"):                                          `3:13 "allow" is not known here`,
		with("permit_age: 25h\n"):                                            `3:13 this is no age of a permit`,
		with("name_limit: 0\n"):                                              `3:13 this is no count`,
		with("resources: b\n"):                                               `3:12 no server has this alias`,
		with("offline: allow\n"):                                             `3:1 offline is about a server`,
		with("server: https://a.example\n"):                                  `1:1 this gateway has a server and no token of it`,
		with("server: ftp://a.example\n"):                                    `3:9 this is no address that could be called`,
		with("listen: 127.0.0.1:0\n"):                                        `1:1 this gateway listens, and nobody may call`,
		with("callers: [{name: a, hold: x}]"):                                `3:27 this is neither a duration nor a client that is known`,
		with("callers: [{name: a, in_place: true}]"):                         `3:10 in_place is about users, and they are not asked`,
		with("ask: user\npeople: p\n"):                                       `3:6 nobody knows whom to ask`,
		with("ask: both\npeople: p\ncallers: {name: a}\n"):                   `3:6 nobody knows whom to ask`,
		with("ask: user\nserver: https://a.example\nserver_token_file: t\n"): `3:6 the users of clients are asked by a gateway without`,
		with("callers: [{name: a},{name: b}]"):                               `3:10 several callers have no token`,
		"agent: a\nupstream: []\n":                                           `2:11 there is no server`,
		program("    url: https://a.example\n"):                              `3:5 a server is either a program or an address`,
		program("    token_file: t\n"):                                       `5:5 token_file belongs to a server with url`,
		program("    args: [1]\n"):                                           `5:12 this is a number`,
		program("    env: {A B: c}\n"):                                       `5:11 this is no name of a variable`,
		program("    env: {A: c}\n    env_from: {A: B}\n"):                   `6:16 A stands in env too`,
		program("    env_from: {A: B-C}\n"):                                  `5:19 this is no name of a variable`,
		program("  - alias: a\n    command: c\n"):                            `5:5 another server of alias is called "a"`,
		"agent: a\nupstream: {alias: a__b, command: c}":                      `2:19 this is no alias`,
		remote("    args: [a]\n"):                                            `5:5 args belongs to a server with command`,
		remote("    header_env: {Host: A}\n"):                                `5:18 the gateway sets Host itself`,
		remote("    header_env: {mcp-name: A}\n"):                            `5:18 the gateway sets Mcp-Name itself`,
		remote("    header_env: {A: B}\n    header_files: {a: b}\n"):         `5:18 the header A is given twice`,
		remote("    token_env: A\n    header_env: {authorization: B}\n"):     `6:18 the token goes into Authorization`,
	})
}

func TestRefusalsOfTokens(t *testing.T) {
	const client = "{token_url: https://a.example, client_id: a, client_secret_file: b}\n"
	issuer := func(more string) string { return with("oauth: {issuers: {issuer: https://i.example" + more) }
	callers := func(more string) string { return with(issued + "callers: " + more) }
	refused(t, map[string]string{
		issuer("}}"):                    `3:1 nobody shows a token on the standard streams`,
		issuer(", algorithms: HS256}}"): `3:58 "HS256" is not known here`,
		issuer(", jwks_file: a, jwks_url: https://a.example}}"):         `3:46 jwks_url and jwks_file say the same`,
		issuer("}, scopes: [a b]}"):                                     `3:56 this is no scope`,
		with("oauth: {scopes: a}"):                                      `3:8 this section oauth lacks issuers`,
		with("oauth: {issuers: {issuer: http://i.example}}"):            `3:27 this is no address that could be called`,
		callers("{name: a}"):                                            `4:1 no caller has a subject`,
		callers("{name: a, issuer: b, token_file: c}"):                  `4:1 no caller has a subject`,
		callers("[{name: a, subject: b, issuer: c}]"):                   `5:11 no issuer is called so`,
		callers("[{name: a, subject: b}, {name: c, subject: b}]"):       `5:34 another caller has this subject`,
		with("listen: 127.0.0.1:1\ncallers: {name: a, subject: b}"):     `4:10 there is no issuer`,
		with(several + "callers: {name: a, subject: b}"):                `5:10 there are several issuers`,
		remote("    token_file: a\n    token_env: A\n"):                 `6:5 token_file and token_env say the same`,
		remote("    token_file: a\n    oauth: " + client):               `6:5 token_file and oauth say the same`,
		remote("    oauth: {client_id: a, client_secret_file: b}"):      `5:12 tokens are issued at one address`,
		program("    oauth: " + client):                                 `5:5 oauth belongs to a server with url`,
		program("    sign_in: {}\n"):                                    `5:5 sign_in belongs to a server with url`,
		remote("    token_file: a\n    sign_in: {}\n"):                  `6:5 token_file and sign_in say the same`,
		remote("    sign_in: {redirect_port: 1}\n"):                     `5:15 redirect_port belongs to a client`,
		remote("    sign_in: {client_id: a, client_secret_file: b}\n"):  `5:29 the secret would be sent to any issuer`,
		remote("    sign_in: {client_id: a, redirect_port: 70000}\n"):   `5:44 this is no port`,
		remote("    sign_in: {}\n    header_env: {Authorization: A}\n"): `6:18 the token goes into Authorization`,
	})
}

const several = "listen: 127.0.0.1:1\noauth: {issuers: [{issuer: https://i.example}, {issuer: https://j.example}]}\n"

// refused checks that texts are refused at a place with a message.
func refused(t *testing.T, all map[string]string) {
	t.Helper()
	for src, want := range all {
		_, findings := Read("mcp.yaml", []byte(src))
		if len(findings) == 0 {
			t.Errorf("%q is accepted", src)
			continue
		}
		f := findings[0]
		got := fmt.Sprintf("%d:%d %s", f.Range.Start.Line, f.Range.Start.Column, f.Message)
		if f.Nearest != "" {
			got += " (nearest: " + f.Nearest + ")"
		}
		if !strings.HasPrefix(got, want) {
			t.Errorf("%q: %s, want %s", src, got, want)
		}
		if f.File != "mcp.yaml" || !f.Stops {
			t.Errorf("%q: %+v", src, f)
		}
	}
}

// TestArguments: arguments and values of variables may be empty, and may contain shell syntax.
func TestArguments(t *testing.T) {
	cfg, findings := Read("mcp.yaml", []byte(
		"agent: a\nupstream: {alias: a, command: b c, args: [\"\", $(x), \"; rm\"], env: {A: \"\"}}\n",
	))
	if len(findings) > 0 {
		t.Fatalf("%+v", findings)
	}
	u := cfg.Upstream[0]
	want := []string{"", "$(x)", "; rm"}
	if _, set := u.Env["A"]; !set || u.Command != "b c" || !reflect.DeepEqual(u.Args, want) {
		t.Errorf("%+v", u)
	}
}

func TestReadEnv(t *testing.T) {
	file := filepath.Join(t.TempDir(), "a.env.yaml")
	write := func(text string, mode os.FileMode) {
		t.Helper()
		must.Do(t, os.WriteFile(file, []byte(text), mode))
		must.Do(t, os.Chmod(file, mode))
	}

	write("A: \"x\\ny\"\nB: \"\"\n", 0o600)
	got, err := ReadEnv(file)
	if want := map[string]string{"A": "x\ny", "B": ""}; err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%v, %v", got, err)
	}
	write("A: secret\n", 0o640)
	if _, err := ReadEnv(file); err == nil || !strings.Contains(err.Error(), "expected mode 0600") {
		t.Errorf("others may read it: %v", err)
	}
	for text, want := range map[string]string{
		"A: 1":              ":1:4: expected the name",
		"A B: hushhush":     ":1:6: expected the name",
		"- hushhush":        ":1:1: expected lines",
		"A: hushhush\nA: b": ":2:1: this can't be read",
		"":                  ":1:1: this can't be read",
	} {
		write(text, 0o600)
		_, err := ReadEnv(file)
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "hushhush") {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// TestContractSaysEveryField: the contract documents each field with its default and its meaning.
func TestContractSaysEveryField(t *testing.T) {
	text := must.Get(os.ReadFile(contract))(t)
	saysFields(t, string(text), schema("gateway").Fields())
}

// TestContractSaysWhatAServiceHas: the section about assent serve documents the fields that exist
// only there, and names all others.
func TestContractSaysWhatAServiceHas(t *testing.T) {
	text := must.Get(os.ReadFile(contract))(t)
	_, section, _ := strings.Cut(string(text), "\n## Inside `assent serve`\n")
	section, _, _ = strings.Cut(section, "\n## ")
	own := maps.Clone(schema("served").Properties)
	for name := range schema("works").Properties {
		delete(own, name)
		if !strings.Contains(section, "`"+name+"`") {
			t.Errorf("the section doesn't name %s", name)
		}
	}

	saysFields(t, section, own)
	for name := range schema("gateway").Properties {
		_, there := schema("served").Properties[name]
		if !there && schema("served").Elsewhere[name] == "" {
			t.Errorf("nobody is told where %s is set", name)
		}
	}
}

// saysFields checks that there is a row for each field.
func saysFields(t *testing.T, text string, fields map[string]*document.Schema) {
	t.Helper()
	lines := strings.Split(text, "\n")
	for path, s := range fields {
		line := lineOf(lines, "| `"+path+"` |")
		switch {
		case line == "":
			t.Errorf("the contract doesn't tell of %s", path)
		case !strings.HasSuffix(line, "| "+s.Description+" |"):
			t.Errorf("the contract says %s, the schema %q", line, s.Description)
		case s.Default != "" && !strings.Contains(line, "| `"+s.Default+"` |"):
			t.Errorf("the contract says %s, the default is %s", line, s.Default)
		}

		for _, word := range s.Enum {
			if !strings.Contains(line, "`"+word+"`") {
				t.Errorf("the contract says %s, which lacks %s", line, word)
			}
		}
	}
}

func lineOf(lines []string, start string) string {
	for _, line := range lines {
		if strings.HasPrefix(line, start) {
			return line
		}
	}

	return ""
}

// section reads a section of assent serve.
func section(t *testing.T, src string) (all []Served, findings []diag.Finding) {
	t.Helper()
	part := must.Get(NewSection("/etc/assent"))(t)
	s := must.Get(document.Load(part.Schema))(t)
	doc, _ := yamldoc.Parse("serve.yaml", []byte(src), yamldoc.Limits{})
	d := document.Decoder{Rule: rule, Formats: part.Formats, Checks: part.Checks}
	d.Decode(doc.Root, s, &all)
	return all, d.Findings
}

const leastServed = "name: files\nagent: clerk\nupstream: {alias: a, command: b}\n"

// TestSection: a gateway of a service has the same defaults as a separate one, and paths are
// relative to the file.
func TestSection(t *testing.T) {
	all, findings := section(t, leastServed+"pins: a.json\nhold: codex\n")
	if len(findings) > 0 || len(all) != 1 {
		t.Fatalf("%+v %+v", all, findings)
	}
	wants(t, map[string][2]any{
		"name":   {all[0].Name, "files"},
		"pins":   {all[0].Pins, "/etc/assent/a.json"},
		"hold":   {all[0].Hold, 4 * time.Minute},
		"within": {all[0].Within, 24 * time.Hour},
		"era":    {all[0].Upstream[0].Era, "auto"},
	})
}

// TestSectionRefusals: settings that can't work, and settings that the service already has, are
// refused with the place and a suggestion.
func TestSectionRefusals(t *testing.T) {
	inline := strings.ReplaceAll(leastServed, "\n", ", ")
	for src, want := range map[string][2]string{
		"name: a\n": {"1:1 this gateway of assent serve lacks agent and upstream", "the id of one in agents"},
		strings.Replace(leastServed, "files", "Files", 1): {
			"1:7 this is no name of an address", "lower-case letters",
		},
		"[{" + inline + "}, {" + inline + "}]": {
			`1:67 another gateway of assent serve is called "files"`, "a name of its own",
		},
		strings.Replace(leastServed, "command: b", "url: https://a.example, sign_in: {}", 1): {
			"3:46 all callers would act as the person", "token_file or oauth",
		},
		leastServed + "in_place: true\n":         {"4:11 in_place is about users", "ask: user or both"},
		leastServed + "resources: b\n":           {"4:12 no server has this alias", "one of upstream"},
		leastServed + "store: s.db\n":            {"4:1 store is no field of this gateway", "store at the top"},
		leastServed + "callers: {name: a}\n":     {"4:1 callers is no field of this gateway", "assent token create"},
		leastServed + "server: https://a.test\n": {"4:1 server is no field of this gateway", "people of this"},
		leastServed + "holt: 1s\n":               {`4:1 no field is called "holt"`, "hold"},
		strings.Replace(leastServed, "command: b", "command: b, url: https://a.example", 1): {
			"3:11 a server is either a program or an address", "one of them",
		},
	} {
		_, findings := section(t, src)
		if len(findings) == 0 {
			t.Errorf("%q is accepted", src)
			continue
		}
		f := findings[0]
		at := fmt.Sprintf("%d:%d %s", f.Range.Start.Line, f.Range.Start.Column, f.Message)
		if !strings.HasPrefix(at, want[0]) || !strings.Contains(f.Expected, want[1]) {
			t.Errorf("%q: %s, expected %s", src, at, f.Expected)
		}
	}
}

// TestEveryFieldHasAPlace: every property of the schema is read into a field.
func TestEveryFieldHasAPlace(t *testing.T) {
	var g Gateway
	var c Caller
	var u Upstream
	var s Served
	for name, target := range map[string]any{"gateway": &g, "served": &s, "caller": &c, "upstream": &u} {
		for field := range schema("gateway").Def(name).Properties {
			if !document.Field(document.Target(target), field).IsValid() {
				t.Errorf("%s.%s is read into nothing", name, field)
			}
		}
	}
}

func TestPublishedSchema(t *testing.T) {
	text := must.Get(JSON())(t)
	var s map[string]any
	must.Do(t, json.Unmarshal(text, &s))
	if s["$ref"] != "#/$defs/gateway" {
		t.Errorf("%v", s["$ref"])
	}
}

// FuzzRead: no text makes the reader panic, and the servers of an accepted configuration can be
// started.
func FuzzRead(f *testing.F) {
	f.Add(least)
	f.Add("agent: a\nupstream: [{alias: a, url: https://a.example, header_env: {A: B}}]")
	f.Add("callers: 1\nupstream: {alias: {}}")
	f.Fuzz(func(t *testing.T, src string) {
		cfg, findings := Read("mcp.yaml", []byte(src))
		if len(findings) > 0 {
			return
		}
		if cfg.Agent == "" || len(cfg.Upstream) == 0 {
			t.Errorf("%q: %+v", src, cfg)
		}
		for _, u := range cfg.Upstream {
			if (u.Command == "") == (u.URL == "") || !IsAlias(u.Alias) {
				t.Errorf("%q: %+v", src, u)
			}
		}
	})
}
