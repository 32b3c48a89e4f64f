// Package openapi is the contract of the HTTP API: openapi.yaml, which
// is written by hand and comes first, and the Go types that are made
// from it. What has a type in the domain is that type.
package openapi

import (
	_ "embed" // for openapi.yaml
)

//go:embed openapi.yaml
var document string

// Document is the text of openapi.yaml.
func Document() string { return document }
