// Package config reads the configuration of `assent serve` and `assent rap gateway` from flags,
// files and the environment.
package config

import "github.com/assent-dev/assent/cmd/internal/term"

// Reader reads configurations and prints findings to its error stream.
type Reader struct{ term.Streams }
