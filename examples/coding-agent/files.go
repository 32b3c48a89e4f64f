// Package codingagent has agent files for the built-in tools of coding
// agents, named by the products as `assent hook` names them, and the
// owner's choices beside them. assent hook install writes them.
package codingagent

import "embed"

// Decisions is the file of the owner's choices.
const Decisions = "decisions.yaml"

// Files are PRODUCT.agf.yaml of each product, and Decisions.
//
//go:embed *.agf.yaml decisions.yaml
var Files embed.FS
