package engine

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"slices"
	"time"

	"github.com/assent-dev/assent/approval/people"
	"github.com/assent-dev/assent/condition"
	"github.com/assent-dev/assent/diag"
	"github.com/assent-dev/assent/internal/safetext"
	"github.com/assent-dev/assent/lint"
	"github.com/assent-dev/assent/lint/rules"
	"github.com/assent-dev/assent/lint/sides"
	"github.com/assent-dev/assent/policy"
	"github.com/assent-dev/assent/posture"
	"github.com/assent-dev/assent/resolve"
	"github.com/assent-dev/assent/schema"
)

// errNothingCompared is what a comparison says that looks at nothing.
var errNothingCompared = errors.New("no *.agf.yaml is in either version, so nothing was compared")

// diff compares two versions. Places name the files of the first below
// old, those of the second below new.
func (r Request) diff() Answer {
	old, findings, err := r.version("old", r.Files)
	if err != nil {
		return failed(fmt.Errorf("old side: %w", err), findings...)
	}
	new, findings, err := r.version("new", r.New)
	if err != nil {
		return failed(fmt.Errorf("new side: %w", err), findings...)
	}
	if len(old)+len(new) == 0 {
		return failed(errNothingCompared)
	}
	report := posture.CompareAll(old, new)
	answer := printed(report)
	if !report.Verdict.Safe() {
		answer.Exit = ExitFindings
	}

	return answer
}

// printed is an answer that is one JSON document.
func printed(v any) Answer {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return failed(err)
	}
	return Answer{Output: []byte(safetext.JSON(b.String()))}
}

// below are files with a directory before their paths.
func (f Files) below(dir string) Files {
	out := Files{}
	for name, text := range f {
		out[path.Join(dir, name)] = text
	}
	return out
}

// version compiles the agents of a version, by their paths.
func (r Request) version(dir string, files Files) (map[string]*posture.Side, []diag.Finding, error) {
	r.Files = files.below(dir)
	if r.Config != "" {
		r.Config = path.Join(dir, r.Config)
	}
	dirs := r.Policies
	r.Policies = nil
	for _, d := range dirs {
		r.Policies = append(r.Policies, path.Join(dir, d))
	}
	compiler, findings, err := r.compiler(dir)
	if err != nil {
		return nil, findings, err
	}
	read, findings, err := compiler.files(r.Files.checked(), dir)
	if err != nil {
		return nil, findings, err
	}
	all, err := read.Compile()
	return all, nil, err
}

// files reads what a version is made of. Paths are those within it.
func (c *compiler) files(all []named, dir string) (*sides.Files, []diag.Finding, error) {
	out := &sides.Files{
		Agents:  map[string]*schema.Agent{},
		Default: sides.Config{Name: c.config, Registry: c.registry, Options: c.options, PermitAge: c.permitAge},
		Linter:  lint.New(rules.All(), lint.Options{}),
	}
	for _, f := range all {
		var findings []diag.Finding
		var err error
		switch f.kind {
		case lint.AgentContent:
			out.Agents[f.path[len(dir)+1:]], findings, err = agentOf(f.path, f.text)
		case lint.PeopleContent:
			var d *people.Directory
			d, findings, err = peopleOf(f.path, f.text)
			out.People = append(out.People, sides.Directory{
				Path:   f.path[len(dir)+1:],
				Name:   f.path,
				People: d,
			})
		}

		if err != nil {
			return nil, findings, err
		}
	}

	return out, nil, nil
}

func agentOf(name string, text []byte) (*schema.Agent, []diag.Finding, error) {
	agent, findings := schema.Parse(name, text)
	if agent == nil {
		return nil, stopping(findings), fmt.Errorf("the agent %s can't be compared", name)
	}
	return agent, nil, nil
}

func peopleOf(name string, text []byte) (*people.Directory, []diag.Finding, error) {
	d, findings := people.Parse(name, text)
	if d == nil {
		return nil, stopping(findings), fmt.Errorf("the people of %s can't be compared", name)
	}
	return d, nil, nil
}

// compiler compiles agents for what is asked of all calls. What can't
// be read or decided on is an error: a side that is half understood
// proves nothing.
type compiler struct {
	registry *policy.Set
	options  resolve.Options
	// how long an approval may be used, as the owner chose
	permitAge time.Duration
	config    string // the name of the owner's configuration
}

// compiler reads what the agents of a side are compiled with. what is
// how it is named; the policies are those of its directories, or of the
// side itself when none are named.
func (r Request) compiler(what string) (*compiler, []diag.Finding, error) {
	owner, findings, err := r.owner(r.Files, r.Config)
	if err != nil {
		return nil, findings, err
	}
	dirs, err := r.policyDirs(owner)
	if err != nil {
		return nil, nil, err
	}
	set, findings := r.policySet(what, dirs)
	if set.Err() != nil {
		return nil, stopping(findings), fmt.Errorf("the policies of %s can't be used", what)
	}

	return &compiler{
		registry:  set,
		options:   owner.Options(),
		permitAge: owner.PermitAge,
		config:    r.Config,
	}, nil, nil
}

func stopping(findings []diag.Finding) []diag.Finding {
	return slices.DeleteFunc(findings, func(f diag.Finding) bool { return !f.Stops })
}

// policySet holds the policies of directories, or those of the version
// when none are named.
func (r Request) policySet(what string, dirs []string) (*policy.Set, []diag.Finding) {
	var files []policy.File
	var unread []diag.Finding
	for _, dir := range dirs {
		found, broken := r.Files.policies(dir)
		files, unread = append(files, found...), append(unread, broken...)
	}
	for _, f := range r.Files.checked() {
		if f.kind == lint.PolicyContent && len(dirs) == 0 && what != r.Agent {
			files = append(files, policy.File{Name: f.path, Text: f.text})
		}
	}

	if len(files) == 0 && len(unread) == 0 {
		return policy.NewSet()
	}

	return policy.LoadFiles(files, what, unread...)
}

// plan compiles one agent.
func (c *compiler) plan(name string, text []byte) (*resolve.Plan, []diag.Finding, error) {
	agent, findings, err := agentOf(name, text)
	if err != nil {
		return nil, findings, err
	}
	plan, err := resolve.Compile(agent, c.registry, c.options)
	if _, unresolved := errors.AsType[*resolve.UnresolvedError](err); unresolved {
		return nil, nil, fmt.Errorf("%s: %w: every call would be denied, which compares nothing", name, err)
	}

	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", name, err)
	}
	return plan, nil, nil
}

// ask reports whether there is any call with an outcome.
func (r Request) ask() Answer {
	q, err := r.Query.query()
	if err != nil {
		return failed(err)
	}
	src, err := r.Files.read(r.Agent)
	if err != nil {
		return failed(fmt.Errorf("the agent: %w", err))
	}
	compiler, findings, err := r.compiler(r.Agent)
	if err != nil {
		return failed(err, findings...)
	}
	plan, findings, err := compiler.plan(r.Agent, src)
	if err != nil {
		return failed(err, findings...)
	}
	if why := q.Vacuous(plan); why != "" {
		return failed(fmt.Errorf("the question is about no call of %s: %s", q.Call.Target(), why))
	}
	found := q.Ask(plan)
	answer := printed(found)
	if found.Found != condition.No {
		answer.Exit = ExitFindings
	}

	return answer
}

// query reads what the flags of agf-validate ask say.
func (q Query) query() (out posture.Query, err error) {
	if out.Call, err = q.call(); err != nil {
		return out, err
	}
	if err := out.Outcome.UnmarshalText([]byte(q.Outcome)); err != nil {
		return out, fmt.Errorf("outcome: %w", err)
	}
	if out.Where, err = posture.ParseWhere(q.Where); err != nil {
		return out, fmt.Errorf("where: %w", err)
	}

	return out, nil
}

// errTarget says how a query names what is called.
var errTarget = errors.New("name one target: tool, server with tool, remote with skill, or delegate")

// call is the call that a query names.
func (q Query) call() (resolve.Call, error) {
	given := [5]bool{q.Tool != "", q.Server != "", q.Remote != "", q.Skill != "", q.Delegate != ""}
	switch given {
	case [5]bool{true, false, false, false, false}:
		return resolve.Call{Kind: resolve.Tool, Tool: q.Tool}, nil
	case [5]bool{true, true, false, false, false}:
		return resolve.Call{Kind: resolve.MCPTool, Server: q.Server, Tool: q.Tool}, nil
	case [5]bool{false, false, true, true, false}:
		return resolve.Call{Kind: resolve.Skill, Agent: q.Remote, Skill: q.Skill}, nil
	case [5]bool{false, false, false, false, true}:
		return resolve.Call{Kind: resolve.Delegation, Agent: q.Delegate}, nil
	}

	return resolve.Call{}, errTarget
}
