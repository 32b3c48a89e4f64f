package policy_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/assent-dev/assent/diag"
	"github.com/assent-dev/assent/internal/must"
	"github.com/assent-dev/assent/policy"
)

// doc writes a policy with one rule.
func doc(ref, applies string) string {
	return fmt.Sprintf(
		"schema_version: \"1.0.0\"\npolicy_ref: %s\napplies: %s\nrules:\n  - {id: all, approval: true}\n",
		ref,
		applies,
	)
}

func file(text string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(text), Mode: 0o644} }

func refs(policies []*policy.Policy) string {
	var all []string
	for _, p := range policies {
		all = append(all, p.Ref)
	}
	return strings.Join(all, " ")
}

// refused checks that a set denies everything and says what the findings say.
func refused(t *testing.T, set *policy.Set, findings []diag.Finding, want ...string) {
	t.Helper()
	report, ok := errors.AsType[*policy.RefusedError](set.Err())
	if !ok || len(report.Findings) == 0 {
		t.Fatalf("the registry is not refused: %v", set.Err())
	}
	if len(set.Policies())+len(set.Implicit()) != 0 {
		t.Error("a refused registry holds policies")
	}
	for _, w := range want {
		if text := render(findings); !strings.Contains(text, w) {
			t.Errorf("no %q in\n%s", w, text)
		}
		if !slices.ContainsFunc(report.Findings, func(f diag.Finding) bool { return f.Stops }) {
			t.Error("no finding of the error stops the load")
		}
	}
}

func TestLoadFS(t *testing.T) {
	set, findings := policy.LoadFS(fstest.MapFS{
		"b.policy.yaml":              file(doc("acme.b", "implicit")),
		"sub/a.policy.yaml":          file(doc("acme.a", "implicit")),
		"sub/deep/c.policy.yaml":     file(doc("acme.c", "referenced")),
		"desk.agf.yaml":              file("not: read"),
		"notes.yaml":                 file("not: read"),
		".hidden.policy.yaml":        file("not: read"),
		"..2026_11_21/b.policy.yaml": file(doc("acme.b", "implicit")), // how Kubernetes mounts a ConfigMap
	}, "policies")
	if len(findings) != 0 || set.Err() != nil {
		t.Fatalf("%v\n%s", set.Err(), render(findings))
	}
	if got := refs(set.Policies()); got != "acme.a acme.b acme.c" {
		t.Errorf("policies: %s", got)
	}
	if got := refs(set.Implicit()); got != "acme.a acme.b" {
		t.Errorf("implicit: %s", got)
	}
	c, ok := set.Policy("acme.c")
	if !ok || c.File != "policies/sub/deep/c.policy.yaml" {
		t.Errorf("acme.c: %t %+v", ok, c)
	}
	if _, ok := set.Policy("acme.d"); ok {
		t.Error("found a policy that is not there")
	}
}

// TestLoadFSIsAllOrNothing checks that one broken file among a hundred refuses them all, and that
// the finding names it.
func TestLoadFSIsAllOrNothing(t *testing.T) {
	tree := fstest.MapFS{}
	for i := range 100 {
		tree[fmt.Sprintf("team-%d/p.policy.yaml", i)] = file(doc(fmt.Sprintf("acme.p%d", i), "implicit"))
	}
	if set, findings := policy.LoadFS(tree, ""); set.Err() != nil || len(set.Policies()) != 100 {
		t.Fatalf("%v\n%s", set.Err(), render(findings))
	}
	tree["team-50/p.policy.yaml"] = file(
		"schema_version: \"1.0.0\"\npolicy_ref: acme.p50\nrules:\n  - {id: a, aproval: true}\n",
	)
	set, findings := policy.LoadFS(tree, "gov")
	refused(t, set, findings, "gov/team-50/p.policy.yaml:4:13", `unknown field "aproval"`, "nearest: approval")
	if want := "policy registry refused: gov/team-50/p.policy.yaml:4:13: rules[0]: unknown field \"aproval\""; set.Err().
		Error() !=
		want {
		t.Errorf("got  %v\nwant %s", set.Err(), want)
	}
}

func TestLoadFSRefuses(t *testing.T) {
	good := file(doc("acme.a", "implicit"))
	for _, c := range []struct {
		name string
		tree fs.FS
		want []string
	}{
		{"no policies", fstest.MapFS{"desk.agf.yaml": good}, []string{"gov:0:0", "policy-none-found"}},
		{
			"no directory",
			os.DirFS(filepath.Join(t.TempDir(), "absent")),
			[]string{"gov:0:0", "policy-unreadable", "no such file"},
		},
		{
			"an unreadable file",
			failing{fstest.MapFS{"a.policy.yaml": good, "b.policy.yaml": good}, "b.policy.yaml"},
			[]string{"gov/b.policy.yaml:0:0", "permission denied"},
		},
		{
			"an unreadable directory",
			failing{fstest.MapFS{"a.policy.yaml": good, "sub/b.policy.yaml": good}, "sub"},
			[]string{"gov/sub:0:0", "permission denied"},
		},
		{
			"a file that breaks off",
			failing{fstest.MapFS{"a.policy.yaml": good}, "read a.policy.yaml"},
			[]string{"gov/a.policy.yaml:0:0", "input/output"},
		},
		{"a pipe", fstest.MapFS{"a.policy.yaml": {Mode: fs.ModeNamedPipe}}, []string{"no regular file"}},
		{
			"a name that is nearly right",
			fstest.MapFS{"a.policy.yaml": good, "b.policy.yml": good},
			[]string{"gov/b.policy.yml:0:0", "policy-file-name"},
		},
		{"a name in other case", fstest.MapFS{"a.Policy.yaml": good}, []string{"policy-file-name"}},
		{
			"too large",
			fstest.MapFS{"a.policy.yaml": file(doc("acme.a", "implicit") + strings.Repeat("#\n", 3<<20))},
			[]string{"yaml-too-large"},
		},
		{
			"two of a name",
			fstest.MapFS{"a.policy.yaml": good, "b.policy.yaml": good},
			[]string{
				"gov/b.policy.yaml:2:13-2:19 error policy-duplicate-ref (stops)",
				"(first in gov/a.policy.yaml:2:13)",
				"see gov/a.policy.yaml:2:13 first used here",
			},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			set, findings := policy.LoadFS(c.tree, "gov")
			refused(t, set, findings, c.want...)
		})
	}
}

// TestLoadFSOnDisk checks real links: a link to a file is read, one to a directory is refused.
func TestLoadFSOnDisk(t *testing.T) {
	dir, outside := t.TempDir(), t.TempDir()
	write := func(name, text string) {
		must.Do(t, os.WriteFile(name, []byte(text), 0o644))
	}
	write(filepath.Join(outside, "shared"), doc("acme.shared", "implicit"))
	must.Do(t, os.Symlink(filepath.Join(outside, "shared"), filepath.Join(dir, "shared.policy.yaml")))
	set, findings := policy.LoadFS(os.DirFS(dir), dir)
	if got := refs(set.Policies()); got != "acme.shared" {
		t.Fatalf("%q\n%s", got, render(findings))
	}
	must.Do(t, os.Symlink(outside, filepath.Join(dir, "more")))
	set, findings = policy.LoadFS(os.DirFS(dir), dir)
	refused(t, set, findings, "more:0:0", "a link to a directory")
}

func TestNewSetRefusesNil(t *testing.T) {
	set, findings := policy.NewSet(nil)
	refused(t, set, findings, "could not be read")
	if want := "policy registry refused: a policy could not be read"; set.Err().Error() != want {
		t.Errorf("got %v", set.Err())
	}
}

func TestRefuseWithoutReason(t *testing.T) {
	set := policy.Refuse([]diag.Finding{{Severity: diag.Warning, Message: "harmless"}})
	if set.Err() == nil || strings.Contains(set.Err().Error(), "harmless") {
		t.Errorf("got %v", set.Err())
	}
}

// TestSetIsImmutable checks that modifying a returned list has no effect on the set.
func TestSetIsImmutable(t *testing.T) {
	set, _ := policy.LoadFS(fstest.MapFS{"a.policy.yaml": file(doc("acme.a", "implicit"))}, "")
	set.Policies()[0], set.Implicit()[0] = nil, nil
	if refs(set.Policies()) != "acme.a" || refs(set.Implicit()) != "acme.a" {
		t.Error("the set changed")
	}
}

// failing is a file system in which one name can't be opened, or breaks
// off when it is read.
type failing struct {
	fs.FS
	name string
}

func (f failing) Open(name string) (fs.File, error) {
	if name == f.name {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrPermission}
	}

	opened, err := f.FS.Open(name)
	if err == nil && "read "+name == f.name {
		return broken{opened}, nil
	}
	return opened, err
}

func (f failing) Stat(name string) (fs.FileInfo, error) { return fs.Stat(f.FS, name) }

func (f failing) ReadDir(name string) ([]fs.DirEntry, error) {
	if name == f.name {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrPermission}
	}

	return fs.ReadDir(f.FS, name)
}

type broken struct{ fs.File }

func (broken) Read([]byte) (int, error) { return 0, errors.New("input/output error") }
