// Package openapi is the contract of the HTTP API: openapi.yaml, which is written by hand,
// and the Go types that are generated from it. Where the domain has a type, the generated
// code uses that type.
package openapi

import (
	_ "embed" // for openapi.yaml
)

//go:embed openapi.yaml
var document string

// Document returns the text of openapi.yaml.
func Document() string { return document }
