package main

import (
	"bytes"
	"compress/gzip"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

//go:embed index.html
var index string

//go:embed playground.css
var style []byte

//go:embed playground.js
var script []byte

// write makes the folder of the playground from a repository.
func write(root, out string) error {
	if err := os.MkdirAll(out, 0o755); err != nil {
		return err
	}
	page, err := render(root)
	if err != nil {
		return err
	}
	glue, err := glueCode(root)
	if err != nil {
		return err
	}
	for name, text := range map[string][]byte{
		"index.html":     page,
		"playground.css": style,
		"playground.js":  script,
		"wasm_exec.js":   glue,
	} {
		if err := os.WriteFile(filepath.Join(out, name), text, 0o644); err != nil {
			return err
		}
	}

	return compile(root, filepath.Join(out, "assent.wasm"))
}

// render inserts the examples into the page as JSON. The JSON has no characters that are
// special in HTML.
func render(root string) ([]byte, error) {
	all, err := examples(root)
	if err != nil {
		return nil, err
	}
	text, err := json.Marshal(all)
	if err != nil {
		return nil, err
	}

	return []byte(strings.Replace(index, "{{examples}}", string(text), 1)), nil
}

// compile builds the engine.
func compile(root, target string) error {
	absolute, err := filepath.Abs(target)
	if err != nil {
		return err
	}
	cmd := exec.Command("go", "build", "-trimpath", "-ldflags", "-s -w", "-o", absolute, "./clients/playground/wasm")
	cmd.Dir = root
	cmd.Env = append(os.Environ(), "GOOS=js", "GOARCH=wasm", "CGO_ENABLED=0")
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &said
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("go build ./clients/playground/wasm: %w\n%s", err, &said)
	}

	return os.Chmod(absolute, 0o644)
}

// glueCode returns the JavaScript file from the Go distribution that starts modules.
func glueCode(root string) ([]byte, error) {
	cmd := exec.Command("go", "env", "GOROOT")
	cmd.Dir = root
	goroot, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go env GOROOT: %w", err)
	}
	return os.ReadFile(filepath.Join(strings.TrimSpace(string(goroot)), "lib", "wasm", "wasm_exec.js"))
}

const megabyte = 1e6

// sizes returns the sizes of the program in megabytes.
func sizes(out string) (raw, zipped float64, err error) {
	program, err := os.ReadFile(filepath.Join(out, "assent.wasm"))
	if err != nil {
		return 0, 0, err
	}
	var b bytes.Buffer
	w, err := gzip.NewWriterLevel(&b, gzip.BestCompression)
	if err != nil {
		return 0, 0, err
	}
	if _, err := w.Write(program); err != nil {
		return 0, 0, err
	}

	err = w.Close()

	return float64(len(program)) / megabyte, float64(b.Len()) / megabyte, err
}

// errNothing is the error for an edit that changes nothing.
var errNothing = errors.New("the text to change is not there, so its second version would be the first")
