package policy

import (
	"errors"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/assent-dev/assent/diag"
	"github.com/assent-dev/assent/internal/yamldoc"
)

// Suffix ends the name of a policy file.
const Suffix = ".policy.yaml"

// maxFile is one byte more than a policy may have (4 MiB), so that the
// parser sees when one is too large.
const maxFile = 4<<20 + 1

// File is the text of one policy document and its name, which findings show.
type File struct {
	Name string
	Text []byte
}

// LoadFS builds a registry from every `*.policy.yaml` below the root of fsys. Names in findings
// start with prefix, usually the directory of fsys. Entries whose name starts with a dot are
// skipped, with everything below them.
//
// The registry is all or nothing (docs/contracts/policy.md). It is refused because of a file or
// directory that can't be read, a document with an error, a policy_ref that occurs twice, a link to
// a directory, a name such as `x.policy.yml` that is almost right, or a tree without any policy
// (more likely a lost mount than intended). The set is never nil; a refused one denies every call.
// The findings of all files are returned, ordered by file and position.
func LoadFS(fsys fs.FS, prefix string) (*Set, []diag.Finding) {
	files, findings := ReadFS(fsys, prefix)
	return LoadFiles(files, prefix, findings...)
}

// LoadFiles builds a registry from documents in memory, under the same conditions as LoadFS. origin
// names their source in the finding that there are none; unread contains findings about the source.
func LoadFiles(files []File, origin string, unread ...diag.Finding) (*Set, []diag.Finding) {
	findings := slices.Clone(unread)
	if len(files) == 0 && !yamldoc.Stops(findings) {
		findings = append(findings, NoneFound(origin))
	}
	var policies []*Policy
	for _, f := range files {
		p, found := Parse(f.Name, f.Text)
		findings = append(findings, found...)
		if p != nil {
			policies = append(policies, p)
		}
	}

	set, found := NewSet(policies...)
	findings = append(findings, found...)
	diag.Sort(findings)
	if yamldoc.Stops(findings) {
		set = Refuse(findings)
	}
	return set, findings
}

// NoneFound returns the finding that a source has no policies, which is more likely a lost mount
// than intended.
func NoneFound(origin string) diag.Finding {
	f := yamldoc.Stop(
		ruleNoneFound,
		diag.Range{},
		"no policy is here, so none would apply",
		"at least one "+Suffix+" file, or no registry at all",
	)
	f.File = origin
	return f
}

// RefOf returns the policy_ref of a document that may be broken, or an empty string if it can't be
// read.
func RefOf(src []byte) string {
	doc, _ := yamldoc.Parse("", src, yamldoc.Limits{})
	if doc == nil {
		return ""
	}
	return text(doc.Root.Get("policy_ref"))
}

// ReadFS returns the files that LoadFS would parse, ordered by name, and findings about those that
// it refuses to read.
func ReadFS(fsys fs.FS, prefix string) ([]File, []diag.Finding) {
	w := walker{fsys: fsys, prefix: prefix}
	// The walk never fails: entry turns every error into a finding and
	// goes on.
	_ = fs.WalkDir(fsys, ".", w.entry)
	return w.files, w.findings
}

// walker collects files and findings from a tree.
type walker struct {
	fsys     fs.FS
	prefix   string
	files    []File
	findings []diag.Finding
}

// entry visits one file or directory. It is a fs.WalkDirFunc that never
// stops the walk with an error.
func (w *walker) entry(name string, d fs.DirEntry, err error) error {
	base := path.Base(name)
	switch {
	case err != nil:
		w.stop(name, ruleUnreadable, "can't be read: "+reason(err), "a directory that can be read")
		return fs.SkipDir
	case strings.HasPrefix(base, ".") && name != ".":
		if d.IsDir() {
			return fs.SkipDir
		}
	case d.IsDir():
	case d.Type()&fs.ModeSymlink != 0 && w.linksToDir(name):
		w.stop(
			name,
			ruleUnreadable,
			"is a link to a directory, which is not followed",
			"the directory itself, or links to files",
		)
	case strings.HasSuffix(base, Suffix):
		w.read(name)
	case nearSuffix(base):
		w.stop(
			name,
			ruleFileName,
			"is named like a policy but would not be read",
			"a name that ends in "+Suffix,
		)
	}

	return nil
}

func (w *walker) linksToDir(name string) bool {
	info, err := fs.Stat(w.fsys, name)
	return err == nil && info.IsDir()
}

func (w *walker) read(name string) {
	text, err := readFile(w.fsys, name)
	if err != nil {
		w.stop(name, ruleUnreadable, "can't be read: "+reason(err), "a file that can be read")
		return
	}
	w.files = append(w.files, File{Name: path.Join(w.prefix, name), Text: text})
}

func (w *walker) stop(name, rule, message, expected string) {
	f := yamldoc.Stop(rule, diag.Range{}, message, expected)
	f.File = path.Join(w.prefix, name)
	w.findings = append(w.findings, f)
}

// errIrregular rejects pipes and devices, on which the loader could wait forever.
var errIrregular = errors.New("it is no regular file")

func readFile(fsys fs.FS, name string) (text []byte, err error) {
	info, err := fs.Stat(fsys, name)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, errIrregular
	}
	f, err := fsys.Open(name)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	return io.ReadAll(io.LimitReader(f, maxFile))
}

// reason returns an error without the path that fs adds, because the finding names the file
// already.
func reason(err error) string {
	if p, ok := errors.AsType[*fs.PathError](err); ok {
		err = p.Err
	}
	return err.Error()
}

// nearSuffix reports whether a name was probably meant as that of a policy.
func nearSuffix(base string) bool {
	base = strings.ToLower(base)
	return slices.ContainsFunc([]string{".policy.yaml", ".policy.yml", ".policy.json", ".policies.yaml"},
		func(s string) bool { return strings.HasSuffix(base, s) })
}
