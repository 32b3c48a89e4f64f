// Command validatebench runs an agf-validate binary on generated agent files, on all cores, and
// reports files per second and peak memory: on 1,000 and 10,000 files of 3 KB, and on one file
// of 1 MB. It exits 1 if memory grows with the number of files, and 2 if agf-validate does not
// find every file clean.
package main

import (
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"

	"github.com/assent-dev/assent/bench/internal/agfgen"
)

const (
	perDirectory = 250
	smallFile    = 3_000
	largeFile    = 1 << 20
)

// broken is a file that agf-validate must report: its approval is neither a boolean nor an
// object.
const broken = `schema_version: "1.0.0"
metadata: {id: broken, name: Broken, version: 1.0.0, description: "Must be reported"}
interface: {input: {type: object}, output: {type: object}}
execution_policy: {id: agf.react, config: {model: small-2, instructions: "None."}}
action_space: {local_tools: [{alias: a, approval: maybe}]}
`

// flat is the largest ratio of peak memory for ten times as many files. The timing of the
// garbage collector alone changes the peak.
const flat = 1.5

func main() {
	binary := flag.String("bin", "", "path of the agf-validate binary")
	files := flag.Int("files", 10_000, "number of small files; a tenth of them is the first run")
	repeat := flag.Int("repeat", 3, "runs of each case; the fastest counts, and the largest peak")
	flag.Parse()
	if *binary == "" || *files < perDirectory*10 || *repeat < 1 {
		fmt.Fprintf(
			os.Stderr,
			"usage: validatebench -bin PATH [-files N, at least %d] [-repeat N]\n",
			perDirectory*10,
		)
		os.Exit(2)
	}

	ok, err := run(os.Stdout, *binary, *files, *repeat)
	if err != nil {
		fmt.Fprintln(os.Stderr, "validatebench:", err)
		os.Exit(2)
	}
	if !ok {
		os.Exit(1)
	}
}

func run(w io.Writer, binary string, files, repeat int) (bool, error) {
	binary, err := filepath.Abs(binary)
	if err != nil {
		return false, err
	}
	dir, err := os.MkdirTemp("", "validatebench")
	if err != nil {
		return false, err
	}
	defer os.RemoveAll(dir)
	cases, err := generate(dir, files)
	if err != nil {
		return false, err
	}
	fmt.Fprintf(
		w,
		"%s %s/%s, %d cores, fastest of %d\n\n",
		runtime.Version(),
		runtime.GOOS,
		runtime.GOARCH,
		runtime.NumCPU(),
		repeat,
	)
	fmt.Fprintln(w, "| files | MB | wall | files/s | files/s/core (user+sys) | MB/s | peak memory |")
	fmt.Fprintln(w, "|--:|--:|--:|--:|--:|--:|--:|")
	for i := range cases {
		if err := cases[i].guard(binary); err != nil {
			return false, err
		}
		if err := cases[i].measure(binary, repeat); err != nil {
			return false, err
		}
		fmt.Fprintln(w, cases[i].row())
	}

	growth := float64(cases[1].peak) / float64(cases[0].peak)
	verdict := "PASS"
	if growth > flat {
		verdict = "FAIL"
	}
	fmt.Fprintf(
		w,
		"\npeak memory of %d files ÷ %d files: %.2f, wanted ≤ %.1f: %s\n",
		cases[1].files,
		cases[0].files,
		growth,
		flat,
		verdict,
	)
	return growth <= flat, nil
}

// generate writes the files of the three cases. The second case contains the first, so that the
// first needs no more disk space.
func generate(dir string, files int) ([]*benchCase, error) {
	all := filepath.Join(dir, "all")
	part := filepath.Join(all, "part")
	few, many := &benchCase{files: files / 10, path: part}, &benchCase{files: files, path: all}
	for i := range files {
		root := all
		if i < few.files {
			root = part
		}
		path := filepath.Join(root, fmt.Sprintf("team%03d", i/perDirectory), fmt.Sprintf("agent%05d.agf.yaml", i))
		n, err := write(path, uint64(i), smallFile)
		if err != nil {
			return nil, err
		}
		if many.bytes += n; i < few.files {
			few.bytes += n
		}
	}

	one := &benchCase{files: 1, path: filepath.Join(dir, "large")}
	var err error
	one.bytes, err = write(filepath.Join(one.path, "large.agf.yaml"), 0, largeFile)
	return []*benchCase{few, many, one}, err
}

func write(path string, seed uint64, size int) (int, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return 0, err
	}
	src := agfgen.File(seed, size)
	return len(src), os.WriteFile(path, src, 0o644)
}
