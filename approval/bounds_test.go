package approval_test

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/approval/ledger"
	"github.com/assent-dev/assent/policy"
	"github.com/assent-dev/assent/resolve"
)

// TestGrantIgnoresWhatDoesNotAct: a standing approval does not compare arguments that the owner
// declared as not acting, if they are texts. They are shown, and the binding covers them.
func TestGrantIgnoresWhatDoesNotAct(t *testing.T) {
	h := newHarness(t)
	h.plans.set(t, policyFile, resolve.Standing{Target: "tool pay", Ignored: []string{"note"}})
	r, g := h.approved(tool("pay", `{"command":"x","note":"first"}`), &approval.GrantOffer{MaxUses: 20})
	if !slices.Equal(g.Ignored, []string{"note"}) || !slices.Equal(r.Current().Ignored, g.Ignored) {
		t.Fatalf("got %q of %+v", g.Ignored, r.Current())
	}
	for args, want := range map[string]bool{
		`{"command":"x","note":"another"}`:         true,
		`{"command":"x"}`:                          true,
		`{"note":null,"command":"x"}`:              true,
		`{"command":"x","note":{"command":"y"}}`:   false,
		`{"command":"x","note":["first"]}`:         false,
		`{"command":"x","note":1}`:                 false,
		`{"command":"x","note":true}`:              false,
		`{"command":"x","Note":"another"}`:         false,
		`{"command":"y","note":"first"}`:           false,
		`{"command":"x","note":"first","more":""}`: false,
		`{"command":{"note":"a"},"note":"first"}`:  false,
		`{"note":"first"}`:                         false,
	} {
		if got := h.covers(tool("pay", args)); got != want {
			t.Errorf("%s: covered %v", args, got)
		}
	}

	a, b := h.asked(tool("pay", `{"command":"z","note":"a"}`)), h.asked(tool("pay", `{"command":"z","note":"b"}`))
	if a.ID == b.ID || a.Binding() == b.Binding() {
		t.Error("a call with another note is taken for the one that people saw")
	}
	if h.plans.set(t, policyFile); h.covers(tool("pay", `{"command":"x","note":"first"}`)) {
		t.Error("the standing approval outlives the owner's declaration")
	}
	h.history()
}

// textGrant returns a standing approval of a call with one text that may vary.
func textGrant(approved string, bounds ...approval.Bound) approval.Grant {
	args, _ := json.Marshal(map[string]string{"x": approved, "other": "y"})
	return approval.Grant{
		Call:    resolve.Call{Kind: resolve.Tool, Tool: "t", Args: args},
		Bounds:  bounds,
		Expires: time.Unix(9, 0),
		MaxUses: 1,
	}
}

// coversText reports whether a standing approval covers its call with another text.
func coversText(g *approval.Grant, text string, change ...func(*resolve.Call)) bool {
	call := g.Call
	call.Args, _ = json.Marshal(map[string]string{"x": text, "other": "y"})
	for _, c := range change {
		c(&call)
	}
	return g.Covers(&call, "", allowing(g.Bounds), time.Unix(1, 0))
}

// allowing returns the bounds of a policy that lets approvers choose these.
func allowing(bounds []approval.Bound) policy.Grants {
	var out policy.Grants
	for _, b := range bounds {
		out.Bounds = append(out.Bounds, policy.Bound{Path: b.Path, Kind: b.Kind})
	}
	return out
}

// TestTextBounds: what each kind of bound covers and what it refuses, among it everything that
// programs may read in another way than the approver did.
func TestTextBounds(t *testing.T) {
	type bound = approval.Bound
	for _, tt := range []struct {
		approved         string
		bounds           []bound
		covered, refused []string
	}{
		{
			"Rome", []bound{{"x", approval.Equals, "Oslo"}, {"x", approval.Equals, "Bern"}},
			[]string{"Rome", "Oslo", "Bern"}, []string{"oslo", "Oslo ", "", "Paris", "Oslo, Bern"},
		},
		{
			"docs/a.md", []bound{{"x", approval.Below, "docs"}},
			[]string{"docs/b.md", "docs/x/y.md", "docs/é.md", "docs/..a", "docs/a..b"},
			[]string{
				"docs", "docs/", "docs/../x", "docs/a/../../x", "docs/..", "/docs/a", "docsx/a", "Docs/a",
				"./docs/a",
				"docs//a", "docs/./a", "docs/a/", "docs\\..\\x", "docs/$HOME", "docs/~", "~/docs/a", "docs/*",
				"docs/{a,b}",
				"docs/.env", "docs/.git/config", "docs/id_rsa", "docs/.github/workflows/x.yml", "docs/a\nb",
				"docs/a\x00",
				"docs/\u202eb", "docs/ ", " docs/a", "docs/a b.md", "docs/a -x", "file://docs/a",
				"docs/CLAUDE.md", "",
			},
		},
		{
			"/w/docs/a", []bound{{"x", approval.Below, "/w/docs"}}, []string{"/w/docs/b"},
			[]string{"w/docs/b", "/w/docs/../b", "/w/docs", "/W/docs/b"},
		},
		{
			"a.txt", []bound{{"x", approval.Below, "."}}, []string{"b", "c/d"}, []string{"/a", "..", "../a",
				".", "~/a", ".env", "-x", "rm x"},
		},
		{
			"https://docs.example.com/a", []bound{{"x", approval.Host, "docs.example.com"}},
			[]string{"https://docs.example.com/", "https://docs.example.com",
				"https://docs.example.com/b/c?q=@evil.com#x"},
			[]string{
				"http://docs.example.com/", "https://docs.example.com.evil.com/",
				"https://evil.com/docs.example.com",
				"https://docs.example.com@evil.com/", "https://user@docs.example.com/",
				"https://docs.example.com:8443/",
				"https://docs.example.com\\@evil.com/", "https://DOCS.example.com/",
				"https://docs.example.com./",
				"https:/docs.example.com/", "//docs.example.com/", "https://docs.example.com?x",
				"https://docs.example.com#@e",
				"https://docs.example.com/ b", "https://docs.example.com/\n", "javascript://docs.example.com/",
				"ftp://docs.example.com/",
				"https://docs.examplе.com/", "https://docs.example.com%2eevil.com/",
				"HTTPS://docs.example.com/", "",
			},
		},
		{
			"http://localhost:8080/a", []bound{{"x", approval.Host, "localhost:8080"}},
			[]string{"http://localhost:8080/b"},
			[]string{"http://localhost/a", "http://localhost:80801/a"},
		},
		{
			"Release 1", []bound{{"x", approval.Prefix, "Release "}},
			[]string{"Release ", "Release 2, at last", "Release notes/x"},
			[]string{
				"release 2", "A Release 2", "Release", "Release 1; rm", "Release $(x)", "Release `x`",
				"Release\u00a02",
				"Release a\nb", "Release ../x", "Release a/../../b", "Release a|b", "Release a && b",
			},
		},
		{"docs/.a", []bound{{"x", approval.Prefix, "docs/."}}, []string{"docs/.b"}, []string{"docs/./../x",
			"docs/../x", "docs/.env"}},
		{"a", []bound{{"x", approval.AnyText, ""}}, []string{"b", ""}, nil},
		{
			"go test ./a", []bound{{"x", approval.Words, "go test *"}},
			[]string{"go test", "go test ./...", "go  test  -run 'A|B' ./b", "go test -v -count=1 ./x",
				`go test "./a b"`},
			[]string{
				"go", "go vet", "go test ./a; rm -rf x", "go test && rm x", "go test | sh", "go test > x",
				"go test $X",
				"go test $(x)", "go test `x`", "X=1 go test", "PATH=/tmp go test", "go test &", "go test;",
				"! go test",
				"go test ./*", "go test {a,b}", "go test # x", "go test\nrm x", "(go test)", "time go test",
				"/tmp/go test",
				"go test -exec rm", "go test -exec=rm", "go test -toolexec=x", "go test -o /bin/x",
				"go test -C /tmp",
				"go test /etc/x", "go test ../x", "go test ~/x", "go test <x", "sudo go test", "env go test",
				"go test @file", "go test -coverprofile=/etc/x", "go test 'a\x00'", "go test $'a'",
				"go\u00a0test", "",
			},
		},
		{
			"git commit -m 'fix: a; b'", []bound{{"x", approval.Words, "git commit -m *"}},
			[]string{`git commit -m "other words"`}, []string{"git commit --amend -m x", "git commit -m $X",
				"git commit -m x > y"},
		},
		{
			"cat notes.txt", []bound{{"x", approval.Words, "cat *"}}, []string{"cat a b/c"},
			[]string{
				"cat .env", "cat /etc/passwd", "cat ~/.ssh/id_rsa", "cat ../x", "cat a/../../x",
				"cat --file=/etc/x",
				"cat key:/etc/x", "cat .git/config", "cat < x",
			},
		},
		{"rm -v a", []bound{{"x", approval.Words, "rm *"}}, []string{"rm b", "rm -v c"}, []string{"rm -rf b",
			"rm -v -- b", "rm -"}},
		{"git push origin a", []bound{{"x", approval.Words, "git push origin *"}}, []string{"git push origin b"},
			[]string{"git push origin --force", "git push origin -f b", "git push evil a"}},
		{
			"cp a b", []bound{{"x", approval.Words, "cp * b"}}, []string{"cp c b"},
			[]string{"cp c d b", "cp b", "cp c d", "cp .env b", "cp -r b", "cp /etc/x b"},
		},
		{"curl -s https://a.example/x", []bound{{"x", approval.Words, "curl -s *"}},
			[]string{"curl -s https://b.example/"},
			[]string{"curl -s file:///etc/passwd", "curl -s -o ~/.bashrc", "curl -s x -o.. "}},
	} {
		g := textGrant(tt.approved, tt.bounds...)
		for _, text := range append(tt.covered, tt.approved) {
			if !coversText(&g, text) {
				t.Errorf("%v: %q is not covered", tt.bounds, text)
			}
		}
		for _, text := range tt.refused {
			if coversText(&g, text) {
				t.Errorf("%v: %q is covered", tt.bounds, text)
			}
		}
		if coversText(&g, tt.covered[0], func(c *resolve.Call) {
			c.Args = []byte(strings.Replace(string(c.Args), `"y"`, `"z"`, 1))
		}) {
			t.Errorf("%v: another argument may differ", tt.bounds)
		}
	}
}

// TestTextBoundsAreForOneDirectory: paths and command lines of another directory, and links that
// lead out of the workspace, are not covered.
func TestTextBoundsAreForOneDirectory(t *testing.T) {
	g := textGrant("docs/a", approval.Bound{Path: "x", Kind: approval.Below, Value: "docs"})
	g.Call.Workspace = &resolve.Workspace{Root: "/w"}
	for name, w := range map[string]*resolve.Workspace{
		"no workspace":      nil,
		"another workspace": {Root: "/v"},
		"another directory": {Root: "/w", Directory: "/w/sub"},
		"a link":            {Root: "/w", Outside: []string{"docs/b"}},
	} {
		if coversText(&g, "docs/b", func(c *resolve.Call) { c.Workspace = w }) {
			t.Errorf("%s: covered", name)
		}
	}
	if !coversText(&g, "docs/b", func(c *resolve.Call) {
		c.Workspace = &resolve.Workspace{Root: "/w", Directory: "/w"}
	}) {
		t.Error("the same directory is not covered")
	}
}

// TestBoundsThatAreRefused: an approver can't choose a bound that does not cover the approved text,
// that is unclear, or that leaves nothing of the call.
func TestBoundsThatAreRefused(t *testing.T) {
	h := newHarness(t)
	named := []string{"a", "b", "hidden", "n"}
	var allowed []policy.Bound
	for _, path := range named {
		for _, kind := range policy.AllBoundKinds() {
			allowed = append(allowed, policy.Bound{Path: path, Kind: kind})
		}
	}
	h.plans.set(t, policyFile, resolve.Standing{Target: "tool pay", Bounds: allowed, Ignored: []string{"note"}})
	const args = `{"a":"go test ./x","b":"docs/a","n":1,"note":"first"}`
	for _, b := range []approval.Bound{
		{Path: "c", Kind: approval.AnyText},
		{Path: "a", Kind: "regexp", Value: ".*"},
		{Path: "a", Kind: approval.AtMost},
		{Path: "n", Kind: approval.AnyText},
		{Path: "n", Kind: approval.AtMost, Value: "2"},
		{Path: "a", Kind: approval.AnyText, Value: "x"},
		{Path: "a", Kind: approval.Equals},
		{Path: "a", Kind: approval.Equals, Value: "a\nb"},
		{Path: "a", Kind: approval.Equals, Value: strings.Repeat("a", 1025)},
		{Path: "a", Kind: approval.Prefix, Value: ""},
		{Path: "a", Kind: approval.Prefix, Value: "npm "},
		{Path: "a", Kind: approval.Words, Value: "*"},
		{Path: "a", Kind: approval.Words, Value: "go *"},
		{Path: "a", Kind: approval.Words, Value: "go vet *"},
		{Path: "a", Kind: approval.Words, Value: "go  test *"},
		{Path: "a", Kind: approval.Words, Value: "go test $X *"},
		{Path: "a", Kind: approval.Words, Value: "go te*"},
		{Path: "a", Kind: approval.Below, Value: "."},
		{Path: "b", Kind: approval.Below, Value: "docs/"},
		{Path: "b", Kind: approval.Below, Value: "src"},
		{Path: "b", Kind: approval.Below, Value: "/"},
		{Path: "b", Kind: approval.Below, Value: "docs/.."},
		{Path: "b", Kind: approval.Host, Value: "docs"},
		{Path: "b", Kind: approval.Words, Value: "docs/a *"},
	} {
		_, err := h.tryVote(h.open(tool("pay", args)).Request, "cy", approval.Approve, func(in *approval.VoteInput) {
			in.Grant = &approval.GrantOffer{MaxUses: 2, Bounds: []approval.Bound{b}}
		})
		if err == nil {
			t.Fatalf("%+v is taken", b)
		}
		h.wrongField(err, "grant.bounds[0]")
	}

	all := []approval.Bound{{Path: "a", Kind: approval.AnyText}, {Path: "b", Kind: approval.AnyText}}
	call := tool("pay", `{"a":"go test ./x","b":"docs/a","note":"first"}`)
	_, err := h.tryVote(h.asked(call), "cy", approval.Approve, func(in *approval.VoteInput) {
		in.Grant = &approval.GrantOffer{MaxUses: 2, Bounds: all}
	})
	h.wrongField(err, "grant.bounds[0]")
	h.vote(h.open(call).Request, "cy", approval.Approve, approval.VoteApproved, func(in *approval.VoteInput) {
		in.Grant = &approval.GrantOffer{MaxUses: 9, Bounds: []approval.Bound{
			all[0], {Path: "b", Kind: approval.Below, Value: "docs"},
		}}
	})
	if !h.covers(tool("pay", `{"a":"anything","b":"docs/b"}`)) || h.covers(tool("pay",
		`{"a":"anything","b":"src/b"}`)) {
		t.Error("any text with a path below docs, and nothing else, is not what is covered")
	}
	h.history()
}

// TestTextsVaryOnlyIfTheOwnerOrPoliciesSaySo: a rule of the agent's file lets vary what the owner
// names for the target, and a policy only what it names itself.
func TestTextsVaryOnlyIfTheOwnerOrPoliciesSaySo(t *testing.T) {
	words := policy.Bound{Path: "s", Kind: approval.Words}
	offer := &approval.GrantOffer{
		MaxUses: 2,
		Bounds:  []approval.Bound{{Path: "s", Kind: approval.Words, Value: "go test *"}},
	}
	for _, tt := range []struct {
		target  string
		grants  []resolve.Standing
		refused bool
	}{
		{"pay", nil, true},
		{"pay", []resolve.Standing{{Target: "tool pay", Bounds: []policy.Bound{words}}}, false},
		{"pay", []resolve.Standing{{Target: "tool quote", Bounds: []policy.Bound{words}}}, true},
		{"spend", []resolve.Standing{{Target: "tool spend", Bounds: []policy.Bound{words}}}, true},
	} {
		h := newHarness(t)
		h.plans.set(t, policyFile, tt.grants...)
		_, err := h.tryVote(h.asked(tool(tt.target, `{"s":"go test ./a"}`)), "cy", approval.Approve,
			func(in *approval.VoteInput) { in.Grant = offer })
		if tt.refused {
			h.wrongField(err, "grant.bounds[0]")
		} else if err != nil {
			t.Error(err)
		} else if !h.covers(tool(tt.target, `{"s":"go test ./b"}`)) || h.covers(tool(tt.target, `{"s":"go vet ./b"}`)) {
			t.Error("the words do not decide what is covered")
		}
		h.history()
	}
}

// TestTheAuditorChecksBounds: with the sealed arguments, the auditor finds a use of a standing approval for a
// call that it did not cover. Without them it finds nothing.
func TestTheAuditorChecksBounds(t *testing.T) {
	h := newHarness(t)
	h.plans.set(t, policyFile, resolve.Standing{
		Target: "tool pay", Ignored: []string{"note"},
		Bounds: []policy.Bound{{Path: "s", Kind: approval.Words}, {Path: "n", Kind: approval.AtMost}},
	})
	h.approved(tool("pay",
		`{"s":"go test ./a","n":5,"note":"first"}`), &approval.GrantOffer{MaxUses: 9, Bounds: []approval.Bound{
		{Path: "s", Kind: approval.Words, Value: "go test *"}, {Path: "n", Kind: approval.AtMost},
	}})
	if !h.covers(tool("pay", `{"s":"go test ./b","n":3,"note":"second"}`)) {
		t.Fatal("not covered")
	}
	h.history()
	stored, err := h.store.Entries(context.Background(), "t", 0, 1000)
	must(t, err)
	for args, found := range map[string]bool{
		"": false, // redacted
		`{"s":"go test ./b","n":3,"note":"second"}`:          false,
		`{"s":"go test ./b; rm x","n":3,"note":"second"}`:    true,
		`{"s":"go vet ./b","n":3,"note":"second"}`:           true,
		`{"s":"go test ./b","n":6,"note":"second"}`:          true,
		`{"s":"go test ./b","n":3,"note":"second","more":1}`: true,
	} {
		var a approval.Auditor
		for i, s := range stored {
			leaf, err := ledger.ParseLeaf(s.Leaf)
			must(t, err)
			openings, err := ledger.ParseOpenings(s.Openings)
			must(t, err)
			if leaf.Type == approval.EventGrantUsed {
				o := openings["args"]
				o.Value = args
				openings["args"] = o
			}
			a.AddOpened(int64(i), leaf, openings)
		}
		if got := len(a.Problems()) > 0; got != found {
			t.Errorf("%s: %v", args, a.Problems())
		}
	}
}
