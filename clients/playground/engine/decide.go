package engine

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path"
	"strings"

	"github.com/assent-dev/assent/diag"
	"github.com/assent-dev/assent/internal/yamldoc"
	"github.com/assent-dev/assent/policy"
	"github.com/assent-dev/assent/resolve"
	"github.com/assent-dev/assent/schema"
	"github.com/assent-dev/assent/value"
)

// errOpen is the error for a request that doesn't ask for decisions.
var errOpen = errors.New("kind: expected decide: only calls are decided one by one")

// decide answers every call.
func (r Request) decide() Answer {
	plan, findings, err := r.plan()
	if err != nil {
		return failed(err, findings...)
	}
	var b bytes.Buffer
	unreadable, unanswered := 0, 0
	for line := range strings.Lines(r.Calls) {
		line = strings.TrimRight(line, "\r\n")
		if strings.Trim(line, " \t\r\n") == "" {
			continue
		}
		var answer any
		if step := plan.NextOf([]byte(line)); step != nil {
			if answer = step; step.Error != "" {
				unanswered++
			}
		} else {
			decision, ok := decideLine(plan, []byte(line))
			if answer = decision; !ok {
				unreadable++
			}
		}
		if err := writeLine(&b, answer); err != nil {
			return failed(err)
		}
	}

	out := Answer{Output: b.Bytes(), Findings: findings}
	switch {
	case unreadable > 0:
		out.Exit, out.Error = ExitFailure, fmt.Sprintf("%d of the lines were no valid call", unreadable)
	case unanswered > 0:
		out.Exit, out.Error = ExitFailure, fmt.Sprintf("%d of the questions about the next step have no answer", unanswered)
	}

	return out
}

// writeLine writes one line of the output.
func writeLine(w io.Writer, d any) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	return e.Encode(d)
}

// decideLine decides the call on one line. ok is false if the line isn't a valid call.
func decideLine(plan *resolve.Plan, line []byte) (d resolve.Decision, ok bool) {
	call, err := resolve.ParseCall(line, value.Limits{})
	if err != nil {
		return plan.Unreadable(err), false
	}
	d = plan.Decide(call)
	if d.Outcome == resolve.Allow {
		if d.Binding, err = plan.Bind(call); err != nil {
			return plan.Unreadable(err), true
		}
	}

	return d, true
}

// plan compiles the agents from the outermost parent inwards.
func (r Request) plan() (*resolve.Plan, []diag.Finding, error) {
	owner, findings, err := r.owner(r.Files, r.Config)
	if err != nil {
		return nil, findings, err
	}
	registry, findings, err := r.registry(owner)
	if err != nil {
		return nil, findings, err
	}
	opt := r.options(owner)
	var plan *resolve.Plan
	for _, file := range append(r.Parents[:len(r.Parents):len(r.Parents)], r.Agent) {
		opt.Parent = plan
		var more []diag.Finding
		plan, more, err = compileFile(r.Files, file, registry, opt)
		if findings = append(findings, more...); err != nil {
			return nil, findings, err
		}
	}

	return plan, findings, nil
}

// compileFile compiles the plan of one agent. If policies are missing, the plan denies every
// call and gives the reason.
func compileFile(
	files Files, file string, registry policy.Registry, opt resolve.Options,
) (*resolve.Plan, []diag.Finding, error) {
	src, err := files.read(file)
	if err != nil {
		return nil, nil, fmt.Errorf("the agent: %w", err)
	}
	agent, findings := schema.Parse(file, src)
	if agent == nil {
		return nil, yamldoc.Stopping(findings), fmt.Errorf("the agent %s can't be used", file)
	}
	plan, err := resolve.Compile(agent, registry, opt)
	if _, unresolved := errors.AsType[*resolve.UnresolvedError](err); err != nil && !unresolved {
		return nil, nil, err
	}

	return plan, plan.Findings(), nil
}

// owner reads the owner's configuration.
func (r Request) owner(files Files, config string) (*resolve.Config, []diag.Finding, error) {
	if config == "" {
		return &resolve.Config{PermitAge: resolve.DefaultPermitAge}, nil, nil
	}
	src, err := files.read(config)
	if err != nil {
		return nil, nil, err
	}
	owner, findings := resolve.ParseConfig(config, src)
	if owner == nil {
		return nil, findings, fmt.Errorf("the decision configuration %s can't be used", config)
	}

	return owner, findings, nil
}

// options returns the options for plans. Without a file, the plan has no configuration.
func (r Request) options(owner *resolve.Config) resolve.Options {
	opt := owner.Options()
	if r.Config == "" {
		opt.Configuration = ""
	}
	return opt
}

// policyDirs lists the directories of policies. The directories of the request replace those of
// the configuration. A registry can't be used here.
func (r Request) policyDirs(owner *resolve.Config) ([]string, error) {
	if len(r.Policies) > 0 {
		return r.Policies, nil
	}
	if owner.Registry != nil {
		return nil, fmt.Errorf(
			"%s: the policies of a registry are not fetched here: name directories of policies",
			r.Config,
		)
	}

	var dirs []string
	for _, dir := range owner.Policies {
		dirs = append(dirs, path.Join(path.Dir(r.Config), dir))
	}

	return dirs, nil
}

// registry reads the policies of all directories. It fails if one of them can't be read, and
// returns nil if there are no directories.
func (r Request) registry(owner *resolve.Config) (policy.Registry, []diag.Finding, error) {
	dirs, err := r.policyDirs(owner)
	if err != nil || len(dirs) == 0 {
		return nil, nil, err
	}
	var all []*policy.Policy
	for _, dir := range dirs {
		files, unread := r.Files.policies(dir)
		set, findings := policy.LoadFiles(files, dir, unread...)
		if set.Err() != nil {
			return nil, findings, fmt.Errorf("the policies in %s can't be used", dir)
		}
		all = append(all, set.Policies()...)
	}

	set, findings := policy.NewSet(all...)
	if set.Err() != nil {
		return nil, findings, fmt.Errorf("the policies in %s can't be used together", strings.Join(dirs, ", "))
	}

	return set, nil, nil
}
