package schema

import (
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/assent-dev/assent/diag"
)

// agentFile writes an agent that delegates to the given sources;
// "type:source" sets a source type.
func agentFile(sources ...string) string {
	var b strings.Builder
	b.WriteString(`schema_version: "1.0.0"
metadata: {id: a, name: A, version: "1", description: An agent.}
interface: {input: {}, output: {}}
execution_policy: {id: agf.react, config: {instructions: Do it., model: m}}
`)
	if len(sources) > 0 {
		b.WriteString("action_space:\n  local_agents:\n")
	}
	for i, s := range sources {
		sourceType, source, typed := strings.Cut(s, "|")
		if !typed {
			sourceType, source = sourceFile, s
		}
		fmt.Fprintf(&b, "    - {alias: a%d, source_type: %s, source: %q}\n", i, sourceType, source)
	}

	return b.String()
}

func limited(depth int, text string) string {
	return text + fmt.Sprintf("constraints:\n  limits:\n    max_delegation_depth: %d\n", depth)
}

func files(pairs ...string) fstest.MapFS {
	m := fstest.MapFS{}
	for i := 0; i < len(pairs); i += 2 {
		m[pairs[i]] = &fstest.MapFile{Data: []byte(pairs[i+1])}
	}
	return m
}

// chain is n files below the root, each naming the next.
func chain(n int) fstest.MapFS {
	m := files(fmt.Sprintf("%d.agf.yaml", n), agentFile())
	for i := range n {
		m[fmt.Sprintf("%d.agf.yaml", i)] = &fstest.MapFile{Data: []byte(agentFile(fmt.Sprintf("%d.agf.yaml", i+1)))}
	}
	return m
}

// graphCase is a set of files; the root is 0.agf.yaml.
type graphCase struct {
	name string
	fsys fs.FS
	want []string // "file rule message", in order
	ok   bool     // a graph comes back
}

func graphCases() []graphCase {
	return []graphCase{
		{name: "alone", fsys: files("0.agf.yaml", agentFile()), ok: true},
		{
			name: "one file by several parents, up and down the folders",
			fsys: files(
				"0.agf.yaml",
				agentFile("./sub/a.agf.yaml", "b.agf.yaml"),
				"sub/a.agf.yaml",
				agentFile("../b.agf.yaml"),
				"b.agf.yaml",
				agentFile(),
			),
			ok: true,
		},
		{
			name: "missing, with a neighbour of nearly that name",
			fsys: files(
				"0.agf.yaml",
				agentFile("agents/writter.agf.yaml", "agents"),
				"agents/writer.agf.yaml",
				agentFile(),
			),
			want: []string{
				`0.agf.yaml missing-sub-agent the sub-agent's file "agents/writter.agf.yaml" can't be read: there ` +
					`is no such file`,
				`0.agf.yaml missing-sub-agent the sub-agent's file "agents" can't be read: it is a folder`,
			},
		},
		{
			name: "a named pipe, which nobody may write to",
			fsys: fstest.MapFS{
				"0.agf.yaml": {Data: []byte(agentFile("p.agf.yaml"))},
				"p.agf.yaml": {Data: []byte(agentFile()), Mode: fs.ModeNamedPipe},
			},
			want: []string{
				`0.agf.yaml missing-sub-agent the sub-agent's file "p.agf.yaml" can't be read: it is no regular file`,
			},
		},
		{
			name: "out of the root",
			fsys: files(
				"0.agf.yaml",
				agentFile("../x.agf.yaml", "/etc/x.agf.yaml", `a\b.agf.yaml`, "https://example.com/x.agf.yaml"),
			),
			want: []string{
				`0.agf.yaml sub-agent-outside source "../x.agf.yaml" leads out of the folder that is checked`,
				`0.agf.yaml sub-agent-outside source "/etc/x.agf.yaml" is not a relative path`,
				`0.agf.yaml sub-agent-outside source "a\\b.agf.yaml" is not a relative path`,
				`0.agf.yaml sub-agent-outside source "https://example.com/x.agf.yaml" is not a relative path`,
			},
		},
		{
			name: "itself",
			fsys: files("0.agf.yaml", agentFile("./0.agf.yaml")),
			want: []string{"0.agf.yaml sub-agent-cycle the agents delegate in a circle: 0.agf.yaml → 0.agf.yaml"},
			ok:   true,
		},
		{
			name: "a circle below the root",
			fsys: files(
				"0.agf.yaml",
				agentFile("a.agf.yaml"),
				"a.agf.yaml",
				agentFile("b.agf.yaml"),
				"b.agf.yaml",
				limited(9, agentFile("a.agf.yaml")),
			),
			want: []string{
				"b.agf.yaml sub-agent-cycle the agents delegate in a circle: a.agf.yaml → b.agf.yaml → a.agf.yaml",
			},
			ok: true,
		},
		{name: "sixteen below each other", fsys: chain(16), ok: true},
		{
			name: "too deep",
			fsys: chain(17),
			want: []string{"16.agf.yaml sub-agents-too-deep more than 16 sub-agents below each other"},
		},
		{
			name: "a sub-agent that does not load",
			fsys: files(
				"0.agf.yaml",
				agentFile("a.agf.yaml"),
				"a.agf.yaml",
				strings.Replace(agentFile(), "1.0.0", "3.0.0", 1),
			),
			want: []string{
				"a.agf.yaml unsupported-schema-version schema_version 3.0.0 is of a major version that assent does " +
					"not know",
			},
		},
		{
			name: "deeper than allowed",
			fsys: files(
				"0.agf.yaml",
				limited(1, agentFile("a.agf.yaml")),
				"a.agf.yaml",
				limited(0, agentFile("registry|acme/x")),
			),
			want: []string{
				"0.agf.yaml delegation-depth max_delegation_depth is 1, but the agents below are 2 deep",
				"a.agf.yaml delegation-depth max_delegation_depth is 0, but the agents below are 1 deep",
			},
			ok: true,
		},
		{
			name: "as deep as allowed",
			fsys: files(
				"0.agf.yaml",
				limited(1, agentFile("a.agf.yaml", "b.agf.yaml")),
				"a.agf.yaml",
				limited(0, agentFile()),
				"b.agf.yaml",
				agentFile(),
			),
			ok: true,
		},
		{
			name: "remote agents are deep too",
			fsys: files("0.agf.yaml", limited(0, agentFile()+"action_space: {remote_agents: [{alias: r}]}\n")),
			want: []string{"0.agf.yaml delegation-depth max_delegation_depth is 0, but the agents below are 1 deep"},
			ok:   true,
		},
		{
			name: "no root",
			fsys: files("1.agf.yaml", agentFile()),
			want: []string{"0.agf.yaml unreadable-file the agent file can't be read: there is no such file"},
		},
	}
}

// graphFindings runs all cases, for the test that every rule is shown.
func graphFindings(t *testing.T) [][]diag.Finding {
	t.Helper()
	var all [][]diag.Finding
	for _, c := range graphCases() {
		_, findings := LoadGraph(c.fsys, "0.agf.yaml")
		all = append(all, findings)
	}
	return all
}

func TestLoadGraph(t *testing.T) {
	for _, c := range graphCases() {
		t.Run(c.name, func(t *testing.T) {
			graph, findings := LoadGraph(c.fsys, "0.agf.yaml")
			var got []string
			for _, f := range findings {
				got = append(got, fmt.Sprintf("%s %s %s", f.File, f.Rule, f.Message))
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("findings\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(c.want, "\n"))
			}
			if (graph != nil) != c.ok {
				t.Errorf("graph read: %v, want %v", graph != nil, c.ok)
			}
		})
	}
}

// TestLoadGraphOfParsedAgent checks that a parsed agent has the same graph, without the findings of
// its own file.
func TestLoadGraphOfParsedAgent(t *testing.T) {
	for _, c := range graphCases() {
		t.Run(c.name, func(t *testing.T) {
			src, err := fs.ReadFile(c.fsys, "0.agf.yaml")
			if err != nil {
				return // there is nothing to parse
			}
			agent, own := Parse("0.agf.yaml", src)
			if agent == nil {
				return
			}
			want, whole := LoadGraph(c.fsys, "0.agf.yaml")
			got, findings := agent.LoadGraph(c.fsys, "0.agf.yaml")
			if render(append(own, findings...)) != render(whole) || (got == nil) != (want == nil) {
				t.Errorf("findings\n%s\nwant\n%s", render(append(own, findings...)), render(whole))
			}
			if got != nil && len(got.Members) != len(want.Members) {
				t.Errorf("%d members, want %d", len(got.Members), len(want.Members))
			}
		})
	}
}

func TestGraphLinks(t *testing.T) {
	fsys := files(
		"team/0.agf.yaml", agentFile("sub/a.agf.yaml", "../b.agf.yaml", "db|agents/7", "acme|x"),
		"team/sub/a.agf.yaml", agentFile("../../b.agf.yaml"),
		"b.agf.yaml", agentFile(),
	)
	g, findings := LoadGraph(fsys, "./team/0.agf.yaml")
	if g == nil || len(findings) > 0 {
		t.Fatalf("findings: %s", render(findings))
	}
	paths := collect(g.Members, func(m *Member) string { return m.Path })
	if want := []string{"team/0.agf.yaml", "team/sub/a.agf.yaml", "b.agf.yaml"}; !slices.Equal(paths, want) {
		t.Errorf("members %v, want %v", paths, want)
	}
	a, b := g.Root.Children[0].To, g.Root.Children[1].To
	if g.Root != g.Members[0] || a != g.Members[1] || a.Children[0].To != b || b != g.Members[2] {
		t.Error("children do not lead to the members")
	}
	if e := g.Root.Children[1]; e.Alias != "a1" || e.Range.Start.Line != 8 {
		t.Errorf("edge %s at %s", e.Alias, span(e.Range))
	}
}

func TestGraphNearestFile(t *testing.T) {
	fsys := files(
		"0.agf.yaml",
		agentFile("agents/writter.agf.yaml"),
		"agents/writer.agf.yaml",
		agentFile(),
		"agents/reader.agf.yaml",
		agentFile(),
	)
	_, findings := LoadGraph(fsys, "0.agf.yaml")
	if len(findings) != 1 || findings[0].Nearest != "writer.agf.yaml" {
		t.Errorf("findings: %s", render(findings))
	}
}

// hostile is a file system that fails in the middle of a file, or never
// stops giving.
type hostile struct {
	fs.FS
	err error
}

func (h hostile) Open(name string) (fs.File, error) {
	f, err := h.FS.Open(name)
	if err != nil || name == "0.agf.yaml" {
		return f, err
	}
	return endless{f, h.err}, nil
}

type endless struct {
	fs.File
	err error
}

func (e endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = '#'
	}
	return len(p), e.err
}

func TestGraphHostileFiles(t *testing.T) {
	fsys := files("0.agf.yaml", agentFile("a.agf.yaml"), "a.agf.yaml", "")
	graph, findings := LoadGraph(hostile{FS: fsys}, "0.agf.yaml")
	if graph != nil || len(findings) != 1 || findings[0].File != "a.agf.yaml" || !findings[0].Stops {
		t.Errorf("an endless file: %s", render(findings))
	}
	for _, err := range []error{fs.ErrPermission, &fs.PathError{
		Op:   "read",
		Path: "a.agf.yaml",
		Err:  fs.ErrPermission,
	}} {
		graph, findings = LoadGraph(hostile{fsys, err}, "0.agf.yaml")
		if graph != nil || len(findings) != 1 || findings[0].Rule != ruleMissingAgent ||
			!strings.HasSuffix(findings[0].Message, ": permission denied") {
			t.Errorf("a file that fails: %s", render(findings))
		}
	}
}
