package main

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/assent-dev/assent/cmd/internal/term"
	"github.com/assent-dev/assent/diag"
	"github.com/assent-dev/assent/internal/yamldoc"
	"github.com/assent-dev/assent/lint"
	"github.com/assent-dev/assent/lint/posture"
	"github.com/assent-dev/assent/lint/rules"
	"github.com/assent-dev/assent/lint/sides"
	"github.com/assent-dev/assent/policy"
	"github.com/assent-dev/assent/policy/people"
	"github.com/assent-dev/assent/resolve"
	"github.com/assent-dev/assent/schema"
)

// compiling are the commands that compile trees of files, to compare or query them.
type compiling struct{ program }

// sideFile is one file of a side of a comparison. rel is its path
// within the side, by which the files of two sides are paired.
type sideFile struct {
	rel, name string
	src       []byte
	kind      fileKind
}

// sideTree holds the files of a side.
type sideTree struct {
	what    string // as it was named
	files   []sideFile
	configs []sideFile // every decisions.yaml
	store   store      // nil if the side is a single file
	chosen  *settings  // .agf-validate.yaml of the side, nil if it has none
	listed  []blob     // every file of a revision below what is compared
	// notFollowed lists the links of a directory that lead to directories.
	notFollowed []string
	read        []string // names of the files read besides those of agents
}

// store reads files that other files of a side refer to. Paths are relative to the side, with
// slashes.
type store interface {
	// file returns an error that is fs.ErrNotExist if there is no such file.
	file(rel string) ([]byte, error)
	// dir returns the files below a directory.
	dir(rel string) (fs.FS, error)
	// name returns the path that messages show.
	name(rel string) string
	// start returns the directory in which .agf-validate.yaml is looked for first; its parents
	// follow.
	start() string
}

// directory is the store of a side that is a directory.
type directory string

func (d directory) file(rel string) ([]byte, error) { return term.ReadFile(d.name(rel), nil) }

func (d directory) dir(rel string) (fs.FS, error) {
	info, err := os.Stat(d.name(rel))
	if err == nil && !info.IsDir() {
		err = fmt.Errorf("%s is not a directory", d.name(rel))
	}
	return os.DirFS(d.name(rel)), err
}

func (d directory) name(rel string) string { return filepath.Join(string(d), filepath.FromSlash(rel)) }

func (directory) start() string { return "." }

// readTree reads a file, or a directory in the same way as a check.
func (v compiling) readTree(path string) (*sideTree, error) {
	out := &sideTree{what: path}
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	for _, in := range walk([]string{path}, v.In) {
		if in.err == nil && in.src == nil {
			in.src, in.err = term.ReadFile(in.path, v.In)
		}
		if in.err != nil {
			return nil, in.err
		}
		f := sideFile{name: in.path, src: in.src, kind: in.kind}
		if rel, err := filepath.Rel(path, in.path); err == nil && info.IsDir() {
			f.rel = filepath.ToSlash(rel)
		}
		out.files = append(out.files, f)
	}
	if !info.IsDir() {
		return out, nil
	}

	out.store = directory(path)
	if err := out.walkOwners(path); err != nil {
		return nil, err
	}

	return out, v.settle(out)
}

// walkOwners reads every decisions.yaml of a directory, and refuses a people.yaml that is not YAML.
// The walk of a check skips both.
func (t *sideTree) walkOwners(root string) error {
	return filepath.WalkDir(root+string(filepath.Separator), func(file string, d fs.DirEntry, err error) error {
		if err == nil && d.Type()&fs.ModeSymlink != 0 {
			if info, broken := os.Stat(file); broken != nil || info.IsDir() {
				t.notFollowed = append(t.notFollowed, file)
			}
		}
		if err != nil || d.IsDir() || !isConfig(d.Name()) && kindOf(d.Name()) != peopleKind {
			return err
		}
		rel, err := filepath.Rel(root, file)
		if err != nil {
			return err
		}
		src, err := term.ReadFile(file, nil)
		if err != nil {
			return err
		}
		if isConfig(d.Name()) {
			t.configs = append(t.configs, sideFile{rel: filepath.ToSlash(rel), name: file, src: src})
			return nil
		}
		return checkPeople(file, src)
	})
}

// replacedByLinks returns an error if the new directory has a link to a directory at a path where
// the old one has files, because such links are not followed.
func replacedByLinks(old, new *sideTree) error {
	for _, link := range new.notFollowed {
		rel, err := filepath.Rel(new.what, link)
		if err != nil {
			return err
		}
		if slices.ContainsFunc(old.files,
			func(f sideFile) bool { return strings.HasPrefix(f.rel, filepath.ToSlash(rel)+"/") }) {
			return fmt.Errorf("%s is a link to a directory, which is not followed, and %s has files there: compare what it "+
				"leads to", link, old.what)
		}
	}
	return nil
}

// isConfig reports whether a file is called decisions.yaml.
func isConfig(base string) bool {
	base = strings.ToLower(base)
	return base == "decisions.yaml" || base == "decisions.yml" || base == "decisions.json"
}

// checkPeople refuses a people.yaml that is not YAML. A YAML file about something else is skipped.
func checkPeople(name string, src []byte) error {
	if _, known := lint.Recognise(src); known {
		return nil
	}
	if doc, _ := yamldoc.Parse(name, src, yamldoc.Limits{}); doc == nil {
		return fmt.Errorf("the people of %s can't be compared: it is not YAML that can be read", name)
	}
	return nil
}

// settle reads the settings of a side if there are any.
func (v compiling) settle(t *sideTree) error {
	for dir := t.store.start(); ; dir = path.Dir(dir) {
		rel := path.Join(dir, settingsName)
		src, err := t.store.file(rel)
		switch {
		case errors.Is(err, fs.ErrNotExist) && dir == ".":
			return nil
		case errors.Is(err, fs.ErrNotExist):
			continue
		case err != nil:
			return err
		}
		t.chosen, err = v.parseSettings(t.store.name(rel), src)
		if v.printUnusable(err) != nil {
			return err
		}
		t.chosen.beside(dir)
		t.read = append(t.read, t.store.name(rel))

		return nil
	}
}

// within cleans a path that a file of the side refers to.
func (t *sideTree) within(file, named string) (string, error) {
	rel := path.Clean(filepath.ToSlash(named))
	if !fs.ValidPath(rel) {
		return "", fmt.Errorf(
			"%s names %s, which is outside of %s: a comparison reads what is inside of a side only", file, named,
			t.what,
		)
	}
	return rel, nil
}

// named reads a file that a file of the side refers to.
func (t *sideTree) named(by, file string) (sideFile, error) {
	rel, err := t.within(by, file)
	if err != nil {
		return sideFile{}, err
	}
	src, err := t.store.file(rel)
	if err != nil {
		return sideFile{}, fmt.Errorf("%s names %s: %w", by, t.store.name(rel), err)
	}
	return sideFile{rel: rel, name: t.store.name(rel), src: src}, nil
}

// sideFlags are the flags with what a side is compiled with.
type sideFlags struct {
	policies []string
	config   string
	people   string
}

// given reports whether a flag names a file of the working tree.
func (f sideFlags) given() bool { return len(f.policies) > 0 || f.config != "" || f.people != "" }

// compiled holds the agents of a side by the path of their file.
type compiled struct {
	sides    map[string]*posture.Side
	catalogs lint.Catalogs // those that the settings of the side name
}

// name sets which tools the servers of each agent offer, by the lists of flags, or by those of the
// settings. It returns the agents.
func (c *compiled) name(flags lint.Catalogs) []*schema.Agent {
	if flags != nil {
		c.catalogs = flags
	}
	var out []*schema.Agent
	for _, s := range c.sides {
		agent := s.Plan.Agent()
		out = append(out, agent)
		s.Offered = c.catalogs.Offered(&agent.ActionSpace)
	}

	return out
}

// compile reads the agents of a side, their policies and people. It returns an error if anything
// can't be read, because a comparison with an incomplete side proves nothing.
func (v compiling) compile(t *sideTree, f sideFlags) (*compiled, error) {
	configs, err := v.configs(t, f)
	if err != nil {
		return nil, err
	}
	read := sides.Files{Linter: lint.New(rules.All(), lint.Options{})}
	if len(configs) == 0 {
		defaults := &owner{Decisions: &term.Decisions{Config: &resolve.Config{PermitAge: resolve.DefaultPermitAge}}}
		if read.Default, err = v.config(t, f, defaults); err != nil {
			return nil, err
		}
	}
	for _, c := range configs {
		one, err := v.config(t, f, c)
		if err != nil {
			return nil, err
		}
		read.Configs = append(read.Configs, one)
	}
	if read.People, err = v.directories(t, f.people); err != nil {
		return nil, err
	}
	if read.Agents, err = v.agents(t); err != nil {
		return nil, err
	}
	catalogs, err := v.catalogs(t)
	if err != nil {
		return nil, err
	}
	all, err := read.Compile()
	for _, side := range all {
		side.Files = append(side.Files, t.read...)
	}

	return &compiled{all, catalogs}, err
}

// owner is one configuration of a side. rel is its path within the side,
// empty if a flag names it.
type owner struct {
	*term.Decisions
	rel string
}

// configs reads the configurations of a side: the one that a flag or the settings name, otherwise
// every decisions.yaml.
func (v compiling) configs(t *sideTree, f sideFlags) ([]*owner, error) {
	if f.config != "" {
		chosen, err := term.ReadDecisions(f.config, v.In, v.Err)
		return []*owner{{Decisions: chosen}}, err
	}
	files := t.configs
	if t.chosen != nil && t.chosen.Config != "" {
		one, err := t.named(t.read[0], t.chosen.Config)
		if err != nil {
			return nil, err
		}
		files = []sideFile{one}
	}
	var out []*owner
	for _, file := range files {
		config, findings := resolve.ParseConfig(file.name, file.src)
		if config == nil {
			v.report(findings, map[string][]byte{file.name: file.src})
			return nil, fmt.Errorf("the decision configuration %s can't be compared", file.name)
		}
		out = append(out, &owner{&term.Decisions{Config: config, File: file.name}, file.rel})
	}

	return out, nil
}

// config loads the policies of a configuration: those of the directories that flags, the settings
// or the configuration name, otherwise those of the side.
func (v compiling) config(t *sideTree, f sideFlags, o *owner) (sides.Config, error) {
	out := sides.Config{
		Path:      o.rel,
		Name:      o.File,
		Options:   o.Options(),
		PermitAge: o.PermitAge,
	}
	if r := o.Config.Registry; r != nil && len(f.policies) == 0 {
		if f.config != "" {
			return out, fmt.Errorf(
				"%s: the policies of a registry are not fetched here: name directories with --policies-old and --policies-new",
				f.config,
			)
		}
		out.PolicyRegistry, out.Keep = r.URL, r.Keep
	}

	var files []policy.File
	var unread []diag.Finding
	var err error
	switch {
	case len(f.policies) > 0:
		files, unread = readDirs(f.policies)
	case f.config != "":
		files, unread = readDirs(o.PolicyDirs())
		if len(o.Policies) == 0 {
			files = t.policies()
		}
	default:
		files, unread, err = t.policiesOf(o)
		if err == nil && t.chosen != nil && len(t.chosen.Policies) > 0 {
			usual := names(files)
			files, unread, err = t.policyDirs(t.read[0], t.chosen.Policies)
			if !slices.Equal(usual, names(files)) {
				out.Chosen = strings.Join(t.chosen.Policies, ", ") + ", as " + settingsName + " says"
			}
		}
	}

	if err == nil {
		out.Registry, err = v.registry(t, files, unread)
	}

	return out, err
}

func names(files []policy.File) []string {
	var out []string
	for _, f := range files {
		out = append(out, f.Name)
	}
	return slices.Sorted(slices.Values(out))
}

// policies returns the policy files of the side itself.
func (t *sideTree) policies() []policy.File {
	var out []policy.File
	for _, f := range t.files {
		if f.kind == policyKind {
			out = append(out, policy.File{Name: f.name, Text: f.src})
		}
	}
	return out
}

// policiesOf reads the policies of a configuration of the side.
func (t *sideTree) policiesOf(o *owner) ([]policy.File, []diag.Finding, error) {
	if len(o.Policies) == 0 {
		return t.policies(), nil, nil
	}
	var dirs []string
	for _, dir := range o.Policies {
		if !filepath.IsAbs(dir) {
			dir = path.Join(path.Dir(o.rel), filepath.ToSlash(dir))
		}
		dirs = append(dirs, dir)
	}
	return t.policyDirs(o.File, dirs)
}

// policyDirs reads directories of policies within the side.
func (t *sideTree) policyDirs(by string, dirs []string) (files []policy.File, unread []diag.Finding, err error) {
	for _, dir := range dirs {
		rel, err := t.within(by, dir)
		if err != nil {
			return nil, nil, err
		}
		tree, err := t.store.dir(rel)
		if err != nil {
			return nil, nil, fmt.Errorf("%s names policies in %s: %w", by, t.store.name(rel), err)
		}
		found, broken := policy.ReadFS(tree, t.store.name(rel))
		if len(found) == 0 && len(broken) == 0 {
			broken = []diag.Finding{policy.NoneFound(t.store.name(rel))}
		}
		files, unread = append(files, found...), append(unread, broken...)
	}

	return files, unread, nil
}

// catalogs reads the lists of tools that the settings of the side name.
func (v compiling) catalogs(t *sideTree) (lint.Catalogs, error) {
	if t.chosen == nil {
		return nil, nil
	}
	var out lint.Catalogs
	for _, entry := range t.chosen.Tools {
		alias, file := splitTools(entry)
		list, err := t.named(t.read[0], file)
		if err != nil {
			return nil, err
		}
		all, err := parseLists(alias, list.name, list.src)
		if err != nil {
			return nil, err
		}
		out = append(out, all...)
		t.read = append(t.read, list.name)
	}

	return out, nil
}

// agents parses the agents of a side, by their paths within it.
func (v compiling) agents(t *sideTree) (map[string]*schema.Agent, error) {
	out := map[string]*schema.Agent{}
	for _, file := range t.files {
		if file.kind != agentKind {
			continue
		}
		agent, findings := schema.Parse(file.name, file.src)
		if agent == nil {
			v.report(findings, map[string][]byte{file.name: file.src})
			return nil, fmt.Errorf("the agent %s can't be compared", file.name)
		}
		out[file.rel] = agent
	}

	return out, nil
}

// directories reads the people: the file that a flag or the settings name, or those of the side.
func (v compiling) directories(t *sideTree, named string) ([]sides.Directory, error) {
	if named != "" {
		d, err := v.readPeople(named)
		return []sides.Directory{{Name: named, People: d}}, err
	}
	files := t.files
	if t.chosen != nil && t.chosen.People != "" {
		one, err := t.named(t.read[0], t.chosen.People)
		if err != nil {
			return nil, err
		}
		one.kind = peopleKind
		files = []sideFile{one}
	}
	var out []sides.Directory
	for _, f := range files {
		if f.kind != peopleKind {
			continue
		}
		d, findings := people.Parse(f.name, f.src)
		if d == nil {
			v.report(findings, map[string][]byte{f.name: f.src})
			return nil, fmt.Errorf("the people of %s can't be compared", f.name)
		}
		out = append(out, sides.Directory{Path: f.rel, Name: f.name, People: d})
	}

	return out, nil
}

// report prints only those findings that prevent a side from being used.
func (v compiling) report(findings []diag.Finding, texts map[string][]byte) {
	term.PrintFindings(v.Err, slices.DeleteFunc(findings, func(f diag.Finding) bool { return !f.Stops }), texts)
}

// registry builds the registry of policy files.
func (v compiling) registry(t *sideTree, files []policy.File, unread []diag.Finding) (*policy.Set, error) {
	if len(files) == 0 && len(unread) == 0 {
		set, _ := policy.NewSet()
		return set, nil
	}
	set, findings, texts := loadPolicies(files, t.what, unread)
	if set.Err() != nil {
		v.report(findings, texts)
		return nil, fmt.Errorf("the policies of %s can't be used", t.what)
	}

	return set, nil
}

// revisions parses "A..B".
func revisions(text string) (old, new string, err error) {
	old, new, ok := strings.Cut(text, "..")
	switch {
	case !ok:
		err = fmt.Errorf("%q is no range of revisions, expected A..B before --", text)
	case strings.HasPrefix(new, "."):
		err = fmt.Errorf("%q has three dots, expected A..B: both revisions are compared as they are", text)
	case old == "":
		err = fmt.Errorf("%q names no old revision, expected A..B", text)
	case strings.HasPrefix(old, "-"), strings.HasPrefix(new, "-"):
		err = fmt.Errorf("%q: a revision does not begin with a dash", text)
	}

	return old, cmp.Or(new, "HEAD"), err
}
