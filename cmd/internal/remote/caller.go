// Package remote is the connection of a command to a server: which one,
// with which token, and what to do about its errors.
package remote

import "github.com/assent-dev/assent/cmd/internal/config"

// Caller is a command line that speaks to a server.
type Caller struct{ config.Reader }
