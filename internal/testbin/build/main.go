// Command build builds programs of this repository as tests use them, and
// prints the path of each. Call it in the repository with the folders of
// main packages, such as cmd/assent.
package main

import (
	"fmt"
	"os"

	"github.com/assent-dev/assent/internal/testbin"
)

func main() {
	for _, folder := range os.Args[1:] {
		path, err := testbin.Build(folder)
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		fmt.Println(path)
	}
}
