package main

import (
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// example is an example that the page offers. It comes from the repository.
type example struct {
	Title string            `json:"title"`
	Files map[string]string `json:"files"`
	// Second has the files of the second version that differ.
	Second map[string]string `json:"second"`
	Calls  []string          `json:"calls"`
	Call   string            `json:"call"`
	Query  query             `json:"query"`
}

// query is the question that the page shows first.
type query struct {
	Kind    string `json:"kind"`
	Owner   string `json:"owner"`
	Target  string `json:"target"`
	Where   string `json:"where"`
	Outcome string `json:"outcome"`
}

// chosen says which example of the repository is used, which of its calls is shown first, and
// which edits make its second version.
type chosen struct {
	title string
	dir   string // or one file
	call  string // a text in the first call
	edits []edit
	query query
}

type edit struct{ file, old, new string }

// choices returns the examples of the page.
func choices() []chosen {
	return []chosen{
		{
			title: "Trading desk",
			dir:   "examples/trading-desk",
			call:  `"amount":20000,"currency":"USD"`,
			edits: []edit{
				{"agent.agf.yaml", "amount: {gt: 10000}", "amount: {gt: 20000}"},
				{"policies/trade-controls.policy.yaml", "quantity: {gte: 10000}", "quantity: {gte: 5000}"},
			},
			query: query{"tool", "", "execute_trade", "amount>50000,currency=USD", "allow"},
		},
		{
			title: "Platform operator (MCP servers)",
			dir:   "examples/platform-operator",
			call:  `"tool":"scale_deployment"`,
			edits: []edit{{"agent.agf.yaml", "[sandbox, preview]", "[sandbox, preview, staging]"}},
			query: query{"mcp_tool", "kubernetes", "scale_deployment", "namespace=sandbox", "ask"},
		},
		{
			title: "Customer support (remote agents)",
			dir:   "examples/customer-support",
			call:  `"amount":250,"currency":"EUR"`,
			edits: []edit{
				// another spelling of the same condition
				{"agent.agf.yaml", `'.*@external\.com$'`, `'@external\.com$'`},
				{"agent.agf.yaml", "[legal, press, regulator]", "[legal, regulator]"},
			},
			query: query{"skill", "payments", "process-payment", "amount<=100", "allow"},
		},
		{
			title: "A file with a mistake",
			dir:   "docs/testdata/readme/oops.agf.yaml",
			edits: []edit{{"agent.agf.yaml", "amount: {gt: 10000, lt: 1000}", "amount: {gt: 10000}"}},
			query: query{"tool", "", "transfer", "amount>1000000", "allow"},
		},
	}
}

// examples reads the examples from a repository.
func examples(root string) ([]example, error) {
	var out []example
	for _, c := range choices() {
		e := c.empty()
		if err := c.read(root, e); err != nil {
			return nil, fmt.Errorf("example %s: %w", c.dir, err)
		}
		out = append(out, *e)
	}

	return out, nil
}

func (c chosen) empty() *example {
	return &example{
		Title:  c.title,
		Files:  map[string]string{},
		Second: map[string]string{},
		Calls:  []string{},
		Query:  c.query,
	}
}

func (c chosen) read(root string, e *example) error {
	if err := e.fill(filepath.Join(root, filepath.FromSlash(c.dir))); err != nil {
		return err
	}
	if i := slices.IndexFunc(e.Calls, func(call string) bool { return strings.Contains(call, c.call) }); i >= 0 {
		e.Call = e.Calls[i]
	}

	return c.change(e)
}

// fill reads a folder, or the file of one agent.
func (e *example) fill(at string) error {
	if filepath.Ext(at) == ".yaml" {
		return e.readAgent(at)
	}
	return e.readFolder(at)
}

// readAgent reads an example that is the file of one agent with a tool named transfer.
func (e *example) readAgent(file string) error {
	text, err := os.ReadFile(file)
	e.Files["agent.agf.yaml"] = string(text)
	e.Calls = []string{`{"kind":"tool","tool":"transfer","args":{"iban":"DE0212","amount":20000}}`}

	return err
}

// change makes the second version.
func (c chosen) change(e *example) error {
	for _, d := range c.edits {
		before, again := e.Second[d.file]
		if !again {
			before = e.Files[d.file]
		}
		after := strings.Replace(before, d.old, d.new, 1)
		if after == before {
			return fmt.Errorf("%s: %w", d.file, errNothing)
		}
		e.Second[d.file] = after
	}

	return nil
}

// readFolder reads the agents, policies and people of a folder, and its calls.
func (e *example) readFolder(dir string) error {
	calls, err := os.ReadFile(filepath.Join(dir, "calls.jsonl"))
	if err != nil {
		return err
	}
	e.Calls = strings.Split(strings.TrimSpace(string(calls)), "\n")
	fsys := os.DirFS(dir)
	return fs.WalkDir(fsys, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || path.Ext(name) != ".yaml" || strings.HasSuffix(name, ".test.yaml") {
			return err
		}
		text, err := fs.ReadFile(fsys, name)
		e.Files[name] = string(text)

		return err
	})
}
