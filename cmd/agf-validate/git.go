package main

import (
	"archive/zip"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/assent-dev/assent/lint"
)

// gitPatience limits the time of one run of git.
const gitPatience = time.Minute

// mostBlob bounds one file of a revision, in bytes.
const mostBlob = 4 << 20

// git runs git in the working directory and returns its output. If it fails, its error output
// becomes the error.
func git(stdin string, args ...string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(context.Background(), gitPatience)
	defer cancel()
	cmd := exec.CommandContext(ctx, "git", args...)
	var out, said bytes.Buffer
	cmd.Stdin = strings.NewReader(stdin)
	cmd.Stdout, cmd.Stderr = &out, &said
	if err := cmd.Run(); err != nil {
		if text := strings.TrimSpace(said.String()); text != "" {
			err = errors.New(strings.TrimPrefix(text, "fatal: "))
		}
		return nil, fmt.Errorf("git %s: %w", args[0], err)
	}

	return out.Bytes(), nil
}

// commitOf resolves a revision.
func commitOf(revision string) (string, error) {
	out, err := git("", "rev-parse", "--verify", "--quiet", "--end-of-options", revision+"^{commit}")
	if err == nil {
		return strings.TrimSpace(string(out)), nil
	}
	if _, in := git("", "rev-parse", "--git-dir"); in != nil {
		return "", in
	}
	return "", fmt.Errorf("%q is no revision that git knows here", revision)
}

// revision is the store of a side that is a git revision. Paths are relative to the root of the
// repository.
type revision struct {
	what   string // as it was named
	commit string
	prefix string // the working directory, from the root of the repository; "." at the root
}

// openRevision resolves a revision.
func openRevision(what string) (*revision, error) {
	commit, err := commitOf(what)
	if err != nil {
		return nil, err
	}
	prefix, err := git("", "rev-parse", "--show-prefix")
	if err != nil {
		return nil, err
	}
	return &revision{what, commit, path.Clean("./" + strings.TrimSuffix(string(prefix), "\n"))}, nil
}

// name returns the path relative to the working directory.
func (r *revision) name(rel string) string {
	if name, err := filepath.Rel(r.prefix, rel); err == nil {
		return filepath.ToSlash(name)
	}
	return rel
}

func (r *revision) start() string { return r.prefix }

// blob is one file of a revision that has not been read yet.
type blob struct {
	path, object string
	link         bool  // a link or a module
	module       bool  // a module
	err          error // why it can't be read, if it is needed
}

// list lists the files below paths, which are relative to the root of the repository. Without
// recursion it lists only those directly in them.
func (r *revision) list(recurse bool, paths ...string) ([]blob, error) {
	args := []string{"ls-tree", "-l", "-z", "--full-tree"}
	if recurse {
		args = append(args, "-r")
	}
	args = append(args, r.commit, "--")
	for _, p := range paths {
		if p != "." {
			args = append(args, p)
		}
	}
	text, err := git("", args...)
	if err != nil {
		return nil, err
	}
	var out []blob
	for entry := range strings.SplitSeq(strings.TrimRight(string(text), "\x00"), "\x00") {
		head, name, _ := strings.Cut(entry, "\t")
		fields := strings.Fields(head) // mode, type, object, size
		if len(fields) < 4 || fields[1] == "tree" {
			continue
		}
		b := blob{path: name, object: fields[2]}
		b.module = fields[1] == "commit"
		if b.link = !strings.HasPrefix(fields[0], "100"); b.link {
			b.err = fmt.Errorf("%s:%s is a link or a module, which is not followed in a revision", r.what, r.name(name))
		} else if size, err := strconv.Atoi(fields[3]); err != nil || size > mostBlob {
			b.err = fmt.Errorf(
				"%s:%s has %s bytes, more than the %d that are read", r.what, r.name(name), fields[3], mostBlob,
			)
		}
		out = append(out, b)
	}

	return out, nil
}

// texts reads files in the given order.
func (r *revision) texts(blobs []blob) ([][]byte, error) {
	if len(blobs) == 0 {
		return nil, nil
	}
	var objects strings.Builder
	for _, b := range blobs {
		if b.err != nil {
			return nil, b.err
		}
		objects.WriteString(b.object + "\n")
	}
	text, err := git(objects.String(), "cat-file", "--batch")
	if err != nil {
		return nil, err
	}
	var out [][]byte
	for _, b := range blobs {
		head, rest, _ := bytes.Cut(text, []byte("\n")) // object, type, size
		fields := bytes.Fields(head)
		size := -1
		if len(fields) == 3 {
			size, err = strconv.Atoi(string(fields[2]))
		}
		if err != nil || size < 0 || size >= len(rest) {
			return nil, fmt.Errorf("git cat-file: %s of %s can't be read", r.name(b.path), r.what)
		}
		out, text = append(out, rest[:size:size]), rest[size+1:]
	}

	return out, nil
}

func (r *revision) file(rel string) ([]byte, error) {
	blobs, err := r.list(false, rel)
	if err != nil {
		return nil, err
	}
	for _, b := range blobs {
		if b.path == rel {
			texts, err := r.texts([]blob{b})
			if err != nil {
				return nil, err
			}
			return texts[0], nil
		}
	}

	return nil, fmt.Errorf("%s:%s: %w", r.what, r.name(rel), fs.ErrNotExist)
}

// dir returns the files below a directory. They are held as an archive,
// because it implements fs.FS.
func (r *revision) dir(rel string) (fs.FS, error) {
	blobs, err := r.list(true, path.Clean(rel)+"/")
	if rel == "." {
		blobs, err = r.list(true)
	}
	if err != nil {
		return nil, err
	}
	if len(blobs) == 0 {
		return nil, fmt.Errorf("%s:%s: %w", r.what, r.name(rel), fs.ErrNotExist)
	}
	below := func(b blob) string { return strings.TrimPrefix(b.path, strings.TrimPrefix(rel+"/", "./")) }
	blobs = slices.DeleteFunc(blobs, func(b blob) bool { return !mayBePolicy(b, below(b)) })
	texts, err := r.texts(blobs)
	if err != nil {
		return nil, err
	}
	var archive bytes.Buffer
	w := zip.NewWriter(&archive)
	for i, b := range blobs {
		f, err := w.CreateHeader(&zip.FileHeader{Name: below(b), Method: zip.Store})
		if err == nil {
			_, err = f.Write(texts[i])
		}
		if err != nil {
			return nil, err
		}
	}
	if err := w.Close(); err != nil {
		return nil, err
	}

	return zip.NewReader(bytes.NewReader(archive.Bytes()), int64(archive.Len()))
}

// mayBePolicy reports whether policy.ReadFS would look at a file: one
// that is named like a policy, or a link that may lead to a directory,
// and is not hidden.
func mayBePolicy(b blob, below string) bool {
	if strings.HasPrefix(below, ".") || strings.Contains(below, "/.") {
		return false
	}
	base := strings.ToLower(path.Base(b.path))
	return strings.Contains(base, ".polic") || b.link && path.Ext(base) == ""
}

// root returns paths of the working directory as paths from the root of
// the repository.
func (r *revision) root(paths []string) ([]string, error) {
	var out []string
	for _, p := range paths {
		rel := path.Join(r.prefix, filepath.ToSlash(p))
		if !fs.ValidPath(rel) {
			return nil, fmt.Errorf("%s is outside of the repository", p)
		}
		out = append(out, rel)
	}
	return out, nil
}

// readRevision reads what is below paths in a revision, and the people and configurations in the
// directories above them. It refuses links, because their target may not be in the revision.
func (v compiling) readRevision(r *revision, paths []string) (*sideTree, error) {
	t := &sideTree{what: r.what, store: r}
	roots, err := r.root(paths)
	if err != nil {
		return nil, err
	}
	blobs, err := r.list(true, roots...)
	if slices.Contains(roots, ".") {
		blobs, err = r.list(true)
	}
	if err != nil {
		return nil, err
	}
	for _, dir := range above(roots) {
		found, err := r.list(false, dir+"/")
		if dir == "." {
			found, err = r.list(false)
		}
		if err != nil {
			return nil, err
		}
		blobs = append(blobs, slices.DeleteFunc(found, func(b blob) bool {
			base := path.Base(b.path)
			return path.Dir(b.path) != dir || kindOf(base) != peopleKind && !isConfig(base)
		})...)
	}

	t.listed = slices.Clone(blobs)
	seen := map[string]bool{}
	blobs = slices.DeleteFunc(blobs, func(b blob) bool {
		base := path.Base(b.path)
		wanted := kindOf(base) != unknownKind || isConfig(base) || slices.Contains(roots, b.path)
		twice := seen[b.path]
		seen[b.path] = true
		return !wanted || twice
	})
	texts, err := r.texts(blobs)
	if err != nil {
		return nil, err
	}
	for i, b := range blobs {
		if err := t.take(sideFile{rel: b.path, name: r.name(b.path), src: texts[i]}); err != nil {
			return nil, err
		}
	}

	return t, v.settle(t)
}

// sameLinks returns an error if the new revision has a link or a module that the old one doesn't
// have and that may lead to files which are not compared.
func sameLinks(old, new *sideTree) error {
	before := map[string]blob{}
	for _, b := range old.listed {
		before[b.path] = b
	}
	for _, l := range new.listed {
		directory := l.module || l.link && path.Ext(l.path) == ""
		if was := before[l.path]; !directory || was.link && was.object == l.object {
			continue
		}
		inside, err := new.leadsInside(l)
		if err != nil {
			return err
		}
		if !inside {
			return fmt.Errorf("%s:%s is a link or a module that %s has not, and it leads out of what is compared: "+
				"compare paths without it, or directories", new.what, l.path, old.what)
		}
	}

	return nil
}

// leadsInside reports whether the target of a link is compared at its own path.
func (t *sideTree) leadsInside(l blob) (bool, error) {
	if l.module {
		return false, nil
	}
	text, err := git("", "cat-file", "blob", l.object)
	if err != nil {
		return false, err
	}
	target := path.Join(path.Dir(l.path), string(text))
	return !path.IsAbs(string(text)) && slices.ContainsFunc(t.listed, func(o blob) bool {
		return !o.link && (o.path == target || strings.HasPrefix(o.path, target+"/"))
	}), nil
}

// above lists the directories that hold paths, from the root on.
func above(roots []string) []string {
	all := map[string]bool{}
	for _, root := range roots {
		for dir := root; dir != "."; {
			dir = path.Dir(dir)
			all[dir] = true
		}
	}
	return slices.Sorted(maps.Keys(all))
}

// take adds a file of a revision to the side.
func (t *sideTree) take(f sideFile) error {
	base := path.Base(f.rel)
	content := lint.ContentOf(f.src)
	switch f.kind = kindOf(base); {
	case isConfig(base):
		t.configs = append(t.configs, f)
		return nil
	case f.kind == peopleKind && content != lint.PeopleContent:
		return checkPeople(f.name, f.src)
	case f.kind == unknownKind && content == lint.PolicyContent:
		f.kind = policyKind
	case f.kind == unknownKind:
		f.kind = agentKind
	}
	t.files = append(t.files, f)

	return nil
}

// lacks returns the first path that none of the revisions has.
func lacks(revisions []*revision, paths []string) (string, error) {
	for _, p := range paths {
		found := false
		for _, r := range revisions {
			roots, err := r.root([]string{p})
			if err != nil {
				return "", err
			}
			if found = found || roots[0] == "."; found {
				break
			}
			blobs, err := r.list(true, roots[0])
			if err != nil {
				return "", err
			}
			found = len(blobs) > 0
		}
		if !found {
			return p, nil
		}
	}

	return "", nil
}
