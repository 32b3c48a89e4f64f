package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/assent-dev/assent/lint"
)

// gitPatience is how long one run of git may take.
const gitPatience = time.Minute

// mostBlob bounds one file of a revision, in bytes.
const mostBlob = 4 << 20

// git runs git in the working directory and returns what it prints.
// What it says of a failure becomes the error.
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

// readRevision reads agents and policies of a revision, as they stand
// below paths. A link is refused: what it leads to is not in the
// revision's list.
func readRevision(revision string, paths []string) (*sideTree, error) {
	commit, err := commitOf(revision)
	if err != nil {
		return nil, err
	}
	list, err := git("", append([]string{"ls-tree", "-r", "-l", "-z", commit, "--"}, paths...)...)
	if err != nil {
		return nil, err
	}
	t := &sideTree{what: revision}
	var blobs []string
	for entry := range strings.SplitSeq(strings.TrimRight(string(list), "\x00"), "\x00") {
		head, name, _ := strings.Cut(entry, "\t")
		fields := strings.Fields(head) // mode, type, object, size
		f := sideFile{rel: name, name: name, kind: kindOf(path.Base(name))}
		named := slices.ContainsFunc(paths, func(p string) bool { return path.Clean(p) == name })
		if len(fields) < 4 || f.kind == unknownKind && !named {
			continue
		}
		if !strings.HasPrefix(fields[0], "100") {
			return nil, fmt.Errorf(
				"%s:%s is a link or a module, which is not followed in a revision",
				revision,
				name,
			)
		}

		if size, err := strconv.Atoi(fields[3]); err != nil || size > mostBlob {
			return nil, fmt.Errorf("%s:%s has %s bytes, more than the %d that are read", revision, name, fields[3], mostBlob)
		}
		t.files, blobs = append(t.files, f), append(blobs, fields[2])
	}

	return t, t.readBlobs(blobs)
}

// readBlobs reads the objects of the files, in their order.
func (t *sideTree) readBlobs(blobs []string) error {
	if len(blobs) == 0 {
		return nil
	}
	out, err := git(strings.Join(blobs, "\n")+"\n", "cat-file", "--batch")
	if err != nil {
		return err
	}
	for i := range t.files {
		head, rest, _ := bytes.Cut(out, []byte("\n")) // object, type, size
		fields := strings.Fields(string(head))
		size, err := strconv.Atoi(fields[len(fields)-1])
		if err != nil || size >= len(rest) {
			return fmt.Errorf("git cat-file: %s of %s can't be read", t.files[i].name, t.what)
		}

		t.files[i].src, out = rest[:size:size], rest[size+1:]
		if t.files[i].kind == unknownKind {
			t.files[i].kind = agentKind
			if lint.ContentOf(t.files[i].src) == lint.PolicyContent {
				t.files[i].kind = policyKind
			}
		}
	}

	t.files = slices.DeleteFunc(t.files, func(f sideFile) bool {
		return f.kind == peopleKind && lint.ContentOf(f.src) != lint.PeopleContent
	})
	return nil
}
