// Command gen writes docs/rules, a page for every rule that
// agf-validate may report and their index, and the operators of
// args_match where files list them. Run it from the top of the
// repository.
package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

func main() {
	if err := errors.Join(writeListings(), write(filepath.Join("docs", "rules"), pages())); err != nil {
		fmt.Fprintf(os.Stderr, "gen: %v\n", err)
		os.Exit(1)
	}
}

// write writes the pages and removes those of rules that are gone.
func write(dir string, pages map[string]string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("make the folder: %w", err)
	}
	stale, err := filepath.Glob(filepath.Join(dir, "*.md"))
	if err != nil {
		return fmt.Errorf("list the pages: %w", err)
	}
	for _, file := range stale {
		if _, ok := pages[filepath.Base(file)]; !ok && strings.HasSuffix(file, ".md") {
			if err := os.Remove(file); err != nil {
				return fmt.Errorf("remove a stale page: %w", err)
			}
		}
	}

	for name, text := range pages {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			return fmt.Errorf("write a page: %w", err)
		}
	}
	return nil
}
