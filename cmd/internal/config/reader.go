// Package config is what `assent serve` and `assent rap gateway` are
// told: by flags, by files and by the environment.
package config

import "github.com/assent-dev/assent/cmd/internal/term"

// Reader reads configurations; what is wrong with them goes to its
// error stream.
type Reader struct{ term.Streams }
