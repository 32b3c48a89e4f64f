package engine

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"slices"
	"time"

	"github.com/assent-dev/assent/condition"
	"github.com/assent-dev/assent/diag"
	"github.com/assent-dev/assent/internal/safetext"
	"github.com/assent-dev/assent/lint"
	"github.com/assent-dev/assent/lint/posture"
	"github.com/assent-dev/assent/lint/rules"
	"github.com/assent-dev/assent/lint/sides"
	"github.com/assent-dev/assent/policy"
	"github.com/assent-dev/assent/policy/people"
	"github.com/assent-dev/assent/resolve"
	"github.com/assent-dev/assent/schema"
)

// errNothingCompared is the error for a comparison without agents.
var errNothingCompared = errors.New("no *.agf.yaml is in either version, so nothing was compared")

// diff compares two versions. In positions, the files of the first version are under old/,
// those of the second under new/.
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

// printed returns an answer whose output is one JSON document.
func printed(v any) Answer {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return failed(err)
	}
	return Answer{Output: []byte(safetext.JSON(b.String()))}
}

// below returns the files with a directory in front of their paths.
func (f Files) below(dir string) Files {
	out := Files{}
	for name, text := range f {
		out[path.Join(dir, name)] = text
	}
	return out
}

// version compiles the agents of a version. The result is keyed by path.
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

// files reads the files of a version. Its keys are paths within the version.
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

// compiler compiles agents for questions about all calls. It fails if something can't be read
// or decided, because a partly understood side proves nothing.
type compiler struct {
	registry *policy.Set
	options  resolve.Options
	// permitAge limits how long an approval may be used. It is from the owner's configuration.
	permitAge time.Duration
	config    string // the name of the owner's configuration
}

// compiler reads the configuration and the policies for one side. The argument "what" is the
// name of the side. The policies come from the directories, or from the side itself if none are
// named.
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

// policySet reads the policies of the directories, or those of the version if there are no
// directories.
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

// ask reports whether a call with the outcome exists.
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

// query converts the flags of `agf-validate ask`.
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

// errTarget says how a query must name its target.
var errTarget = errors.New("name one target: tool, server with tool, remote with skill, or delegate")

// call returns the call that a query names.
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
