package people_test

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/diag"
	"github.com/assent-dev/assent/internal/golden"
	"github.com/assent-dev/assent/internal/jsonschema"
	"github.com/assent-dev/assent/internal/must"
	"github.com/assent-dev/assent/internal/yamldoc"
	"github.com/assent-dev/assent/policy/people"
	"github.com/assent-dev/assent/schema"
	"github.com/assent-dev/assent/server/directory"
)

func render(findings []diag.Finding) string {
	var b strings.Builder
	for _, f := range findings {
		fmt.Fprintf(
			&b,
			"%s:%d:%d %s %s\n    %s\n    expected: %s\n",
			f.File,
			f.Range.Start.Line,
			f.Range.Start.Column,
			f.Severity,
			f.Rule,
			f.Message,
			f.Expected,
		)
		if f.Nearest != "" {
			fmt.Fprintf(&b, "    nearest: %s\n", f.Nearest)
		}
		for _, r := range f.Related {
			fmt.Fprintf(&b, "    %d:%d %s\n", r.Range.Start.Line, r.Range.Start.Column, r.Message)
		}
	}

	return b.String()
}

func files(t testing.TB, dir string) map[string][]byte {
	t.Helper()
	names, err := filepath.Glob(filepath.Join("testdata", dir, "*.yaml"))
	if err != nil || len(names) == 0 {
		t.Fatalf("nothing in testdata/%s: %v", dir, err)
	}
	out := map[string][]byte{}
	for _, name := range names {
		src, err := os.ReadFile(name)
		must.Do(t, err)
		out[filepath.Base(name)] = src
	}

	return out
}

// parse parses a directory and expects no findings.
func parse(t testing.TB, text string) *people.Directory {
	t.Helper()
	d, findings := people.Parse("people.yaml", []byte(text))
	if d == nil || len(findings) > 0 {
		t.Fatalf("%s%s", text, render(findings))
	}
	return d
}

func TestParseBad(t *testing.T) {
	var all strings.Builder
	bad := files(t, "bad")
	for _, name := range slices.Sorted(func(yield func(string) bool) {
		for name := range bad {
			if !yield(name) {
				return
			}
		}
	}) {
		d, findings := people.Parse(name, bad[name])
		if d != nil || len(findings) == 0 {
			t.Errorf("%s was read", name)
		}
		all.WriteString(render(findings))
	}

	golden.Equal(t, "bad.golden", all.String())
}

func TestParseGood(t *testing.T) {
	for name, src := range files(t, "good") {
		if d, findings := people.Parse(name, src); d == nil || len(findings) > 0 {
			t.Errorf("%s:\n%s", name, render(findings))
		}
	}
}

func TestDirectory(t *testing.T) {
	ctx := t.Context()
	d := parse(t, string(files(t, "good")["all.yaml"]))
	alice := approval.Person{
		ID:     "alice@example.com",
		Name:   "Alice Doe",
		Groups: []string{"desk-heads", "risk"},
		Also:   []string{"alice", "slack:U012345", "oidc:https://idp.example|abc123"},
	}
	bob := approval.Person{ID: "bob@example.com", Name: "Bob Roe", Groups: []string{"risk"}}
	zoe := approval.Person{ID: "zoë", Groups: []string{}, Also: []string{"Zoë Doe"}}
	for name, want := range map[string]approval.Person{
		"alice@example.com":               alice,
		"ALICE@Example.com":               alice,
		"alice":                           alice,
		"Alice":                           alice,
		"slack:U012345":                   alice,
		"Slack:U012345":                   alice,
		"oidc:https://idp.example|abc123": alice,
		"bob@example.com":                 bob,
		"zoe\u0308":                       zoe,
		"ZOË":                             zoe,
		"zoë doe":                         zoe,
	} {
		if p, ok, err := d.Person(ctx, "any", name); !ok || err != nil || !reflect.DeepEqual(p, want) {
			t.Errorf("%q is %+v %t %v", name, p, ok, err)
		}
	}

	for _, name := range []string{
		"",
		" ",
		"anonymous",
		"ANONYMOUS",
		"unknown",
		"Alice Doe",
		"slack:u012345",
		"oidc:https://idp.example|ABC123",
		"oidc:https://idp.example|",
		"alice ",
		" alice",
		"al\u200bice",
		"alıce@example.com",
		"alice@example.com\x00",
		"zoe",
		"аlice",
		"alice\nbob",
		"*",
		strings.Repeat("a", 401),
	} {
		if p, ok, err := d.Person(ctx, "any", name); ok || err != nil {
			t.Errorf("%q is %+v %v", name, p, err)
		}
	}

	for group, want := range map[string][]approval.Person{
		"":           {alice, bob, zoe},
		"risk":       {alice, bob},
		"desk-heads": {alice},
		"nobody":     nil,
	} {
		if got, err := d.Members(ctx, "any", group); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("group %q: %+v %v", group, got, err)
		}
	}

	for agent, want := range map[string][]string{
		"trading-desk": {alice.ID, bob.ID},
		"payments":     {bob.ID},
		"other":        nil,
	} {
		if got, err := d.Owners(ctx, "any", agent); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("agent %q: %+v %v", agent, got, err)
		}
	}

	open := parse(t, "schema_version: \"1.0.0\"\npeople: []\n")
	if !d.Declares("any", "risk") || d.Declares("any", "rsik") || open.Declares("any", "risk") {
		t.Error("Declares")
	}
}

// TestDirectoryIsImmutable: changing a returned value does not change the directory.
func TestDirectoryIsImmutable(t *testing.T) {
	ctx := t.Context()
	d := parse(t, string(files(t, "good")["all.yaml"]))
	p, _, _ := d.Person(ctx, "", "bob@example.com")
	p.Groups[0] = "desk-heads"
	all, _ := d.Members(ctx, "", "")
	all[1].Groups[0] = "desk-heads"
	owners, _ := d.Owners(ctx, "", "payments")
	owners[0] = "alice"
	if p, _, _ := d.Person(ctx, "", "bob@example.com"); p.Holds("desk-heads") {
		t.Error("groups changed")
	}
	if owners, _ := d.Owners(ctx, "", "payments"); owners[0] != "bob@example.com" {
		t.Error("owners changed")
	}
}

func TestTenants(t *testing.T) {
	ctx := t.Context()
	tenants := directory.Tenants{
		"a": parse(t, "schema_version: \"1.0.0\"\npeople:\n  - {id: alice, groups: [g], owns: [x]}\ngroups: {g: {}}\n"),
		"b": parse(t, "schema_version: \"1.0.0\"\npeople:\n  - {id: bob, groups: [g]}\n"),
	}
	for _, c := range []struct {
		tenant, name string
		known        bool
	}{{"a", "alice", true}, {"b", "alice", false}, {"", "alice", false}, {"c", "bob", false}} {
		if _, ok, err := tenants.Person(ctx, c.tenant, c.name); ok != c.known || err != nil {
			t.Errorf("%+v: %t %v", c, ok, err)
		}
	}

	for tenant, want := range map[string]int{"a": 1, "b": 1, "c": 0} {
		if m, err := tenants.Members(ctx, tenant, "g"); len(m) != want || err != nil {
			t.Errorf("%s: %v %v", tenant, m, err)
		}
	}

	if o, _ := tenants.Owners(ctx, "b", "x"); o != nil {
		t.Errorf("owners of another tenant: %v", o)
	}
	if o, _ := tenants.Owners(ctx, "a", "x"); len(o) != 1 || tenants.Declares("c", "g") || !tenants.Declares("a", "g") {
		t.Error("owners, declares")
	}
	if o, err := tenants.Owners(ctx, "c", "x"); o != nil || err != nil {
		t.Error("owners of no tenant")
	}
}

// TestRulesShowWhatTheyMean: the bad example of every rule has a finding of that rule, and the good
// example has none.
func TestRulesShowWhatTheyMean(t *testing.T) {
	for _, r := range people.Rules() {
		if !regexp.MustCompile(`^[a-z]+(-[a-z]+)+$`).MatchString(r.ID) || r.Title == "" || r.Why == "" || r.Spec == "" {
			t.Errorf("incomplete: %+v", r)
		}
		_, findings := people.Parse("bad", []byte(r.Bad))
		if !slices.ContainsFunc(findings, func(f diag.Finding) bool {
			return f.Rule == r.ID && f.Severity == r.Severity
		}) {
			t.Errorf("%s: the bad example is not reported:\n%s", r.ID, render(findings))
		}
		parse(t, r.Good)
	}
}

// TestSchema: the JSON Schema reports the errors that it can express, and accepts everything that
// Parse accepts.
func TestSchema(t *testing.T) {
	s, err := jsonschema.Compile("people", people.JSON())
	must.Do(t, err)
	for name, src := range files(t, "good") {
		doc, _ := yamldoc.Parse(name, src, yamldoc.Limits{})
		if failures := s.Validate(doc.Root.Any()); failures != nil {
			t.Errorf("%s: %+v", name, failures)
		}
	}

	doc, _ := yamldoc.Parse("shape", files(t, "bad")["shape.yaml"], yamldoc.Limits{})
	if failures := s.Validate(doc.Root.Any()); len(failures) < 4 {
		t.Errorf("shape: %+v", failures)
	}
}

// TestContractPage: the example on the page can be parsed.
func TestContractPage(t *testing.T) {
	page, err := os.ReadFile("../../docs/contracts/people.md")
	must.Do(t, err)
	_, rest, ok := strings.Cut(string(page), "```yaml\n")
	example, _, ok2 := strings.Cut(rest, "```")
	if !ok || !ok2 {
		t.Fatal("no example")
	}
	parse(t, example)
}

func knownRules() map[string]bool {
	known := map[string]bool{}
	for _, r := range slices.Concat(people.Rules(), yamldoc.Rules(), schema.Rules()) {
		known[r.ID] = true
	}
	return known
}

func FuzzParse(f *testing.F) {
	for _, dir := range []string{"good", "bad"} {
		for _, src := range files(f, dir) {
			f.Add(src)
		}
	}
	known := knownRules()
	f.Fuzz(func(t *testing.T, src []byte) {
		d, findings := people.Parse("f", src)
		if stopped := slices.ContainsFunc(findings, func(f diag.Finding) bool {
			return f.Stops
		}); (d == nil) != stopped {
			t.Fatalf("read is %t:\n%s", d != nil, render(findings))
		}
		for _, f := range findings {
			if !known[f.Rule] || f.File != "f" || f.Message == "" || f.Stops && f.Severity != diag.Error {
				t.Fatalf("odd finding: %+v", f)
			}
		}
		if d != nil {
			soundDirectory(t, d)
		}
	})
}

// soundDirectory checks the invariants of a directory.
func soundDirectory(t *testing.T, d *people.Directory) {
	t.Helper()
	all, err := d.Members(t.Context(), "", "")
	must.Do(t, err)
	for _, p := range all {
		again, ok, err := d.Person(t.Context(), "", p.ID)
		if p.ID == "" || !ok || err != nil || !reflect.DeepEqual(p, again) ||
			diag.Printable(p.ID+p.Name+strings.Join(p.Groups, "")) != p.ID+p.Name+strings.Join(p.Groups, "") {
			t.Fatalf("%+v is %+v %t %v", p, again, ok, err)
		}
	}

	for _, name := range []string{"", "anonymous", "unknown"} {
		if _, ok, _ := d.Person(t.Context(), "", name); ok {
			t.Fatalf("%q is somebody", name)
		}
	}
}

// TestBlockedNamesBarAllNamesOfThePerson: blocking one name of a person blocks all of them, but the
// person keeps owning agents.
func TestBlockedNamesBarAllNamesOfThePerson(t *testing.T) {
	d, findings := people.Parse("people.yaml", []byte("schema_version: \"1.0.0\"\npeople:\n"+
		"  - {id: alice@example.com, also: [alice, \"slack:U1\"], groups: [risk], owns: [desk]}\n  - {id: bob, groups: [risk]}\n"+
		"blocked: [Alice, mallory@example.com]\n"))
	if d == nil {
		t.Fatal(findings)
	}
	for _, name := range []string{"alice@example.com", "alice", "slack:U1", "Mallory@example.com"} {
		if _, known, err := d.Person(t.Context(), "", name); known || err != nil || !d.Blocked("", name) {
			t.Errorf("%s: known %t, blocked %t, %v", name, known, d.Blocked("", name), err)
		}
	}
	members, _ := d.Members(t.Context(), "", "risk")
	owners, _ := d.Owners(t.Context(), "", "desk")
	if len(members) != 1 || members[0].ID != "bob" || d.Blocked("", "bob") || len(owners) != 1 {
		t.Errorf("members %+v, owners %v", members, owners)
	}
	if d, _ := people.Parse("people.yaml", []byte("schema_version: \"1.0.0\"\npeople: []\nblocked: [nobody]\n")); d != nil {
		t.Error("a name that nobody may have can be blocked")
	}
}
