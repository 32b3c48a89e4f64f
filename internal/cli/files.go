package cli

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// maxFile bounds one file, in bytes: more than any real agent, little enough to read 100 of them at once.
const maxFile = 4 << 20

// fileKind is what a file claims to be.
type fileKind uint8

const (
	unknownKind fileKind = iota // decided by its content
	agentKind
	policyKind
)

// kindOf goes by the name, as the standard does. Names that are nearly right count too: a walk that passed over agent.agf.yml
// would call an agent clean that nobody has looked at.
func kindOf(name string) fileKind {
	name = strings.ToLower(name)
	for _, ending := range []string{".yaml", ".yml", ".json"} {
		switch base := strings.TrimSuffix(name, ending); {
		case base == name:
		case strings.HasSuffix(base, ".agf"):
			return agentKind
		case strings.HasSuffix(base, ".policy"):
			return policyKind
		}
	}
	return unknownKind
}

// input is one file to check: where to read it, and the directory that its sub-agents must stay in.
type input struct {
	path string // "-" is standard input
	root string
	err  error // met while walking
}

// errNothingHere makes a gate that looks at nothing fail: a moved directory is more likely than a wish.
var errNothingHere = errors.New("no *.agf.yaml and no *.policy.yaml is here, so nothing was checked")

// walk sends every input in a fixed order: arguments as given, directories in lexical order. A file that several arguments
// lead to is sent once.
func walk(paths []string, send func(input)) {
	if len(paths) > 1 {
		send = once(send)
	}
	for _, p := range paths {
		info, err := os.Stat(p)
		switch {
		case p == "-":
			send(input{path: p})
		case err != nil:
			send(input{path: p, err: err})
		case !info.IsDir():
			send(input{path: p, root: rootOf(p)})
		default:
			walkDir(p, send)
		}
	}
}

// once passes on the first input of each path.
func once(send func(input)) func(input) {
	seen := map[string]bool{}
	return func(in input) {
		key := in.path
		if abs, err := filepath.Abs(in.path); err == nil && in.path != "-" {
			key = abs
		}
		if !seen[key] {
			seen[key] = true
			send(in)
		}
	}
}

func walkDir(dir string, send func(input)) {
	found := false
	// The separator makes the walk enter a directory that is given as a link. The callback never returns an error: what can't
	// be read is an input with an error.
	_ = filepath.WalkDir(dir+string(filepath.Separator), func(path string, d fs.DirEntry, err error) error {
		if err == nil && (d.IsDir() || kindOf(d.Name()) == unknownKind) {
			return nil
		}
		found = true
		send(input{path: path, root: dir, err: err})
		return nil
	})
	if !found {
		send(input{path: dir, err: fmt.Errorf("%s: %w", dir, errNothingHere)})
	}
}

// rootOf is the directory that a single file's sub-agents must stay in: the working directory when the file lies below it,
// else the file's own.
func rootOf(path string) string {
	if filepath.IsLocal(path) {
		return "."
	}
	return filepath.Dir(path)
}

// readInput reads one input, up to the bound and one byte more, which is enough to refuse it.
func readInput(path string, stdin io.Reader) ([]byte, error) {
	if path == "-" {
		return io.ReadAll(io.LimitReader(stdin, maxFile+1))
	}
	info, err := os.Stat(path) // before it is opened: a named pipe without a writer would hold us there
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("open %s: not a regular file", path)
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, maxFile+1))
}
