// Package remote connects commands to a server: it selects the server and the token, and explains
// errors.
package remote

import "github.com/assent-dev/assent/cmd/internal/config"

// Caller is a command line that connects to a server.
type Caller struct{ config.Reader }
