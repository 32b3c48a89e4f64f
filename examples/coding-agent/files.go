// Package codingagent has agent files for the built-in tools of coding
// agents, named by the products as `assent hook` names them, and the
// owner's choices beside them. assent hook install writes them.
package codingagent

import "embed"

//go:embed *.agf.yaml decisions.yaml
var files embed.FS

// Decisions is the file of the owner's choices.
const Decisions = "decisions.yaml"

// File is the text of a file: Decisions, or PRODUCT.agf.yaml.
func File(name string) ([]byte, error) { return files.ReadFile(name) }
