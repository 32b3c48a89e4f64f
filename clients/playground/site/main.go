// Command site writes the playground: a folder of static files for any web server
// (docs/guides/playground.md).
package main

import (
	"flag"
	"fmt"
	"os"
)

func main() {
	out := flag.String("out", "bin/playground", "`DIR` to write")
	root := flag.String("root", ".", "`DIR` of the repository")
	flag.Parse()
	if err := run(*root, *out); err != nil {
		fmt.Fprintln(os.Stderr, "playground:", err)
		os.Exit(2)
	}
}

// run writes the site and prints the size of its program.
func run(root, out string) error {
	if err := write(root, out); err != nil {
		return err
	}
	raw, zipped, err := sizes(out)
	fmt.Printf("%s: assent.wasm has %.1f MB, %.1f MB with gzip\n", out, raw, zipped)

	return err
}
