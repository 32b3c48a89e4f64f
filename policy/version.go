package policy

import "github.com/assent-dev/assent/internal/yamldoc"

// needs11 is what a finding expects about a part of a policy that version 1.0 does not have.
const needs11 = `needs schema_version "1.1.0"`

// isPolicy11 reports whether a policy may use the fields and operators of version 1.1: its
// schema_version is 1.N.z with N at least 1.
func isPolicy11(root *yamldoc.Node) bool { return yamldoc.AtLeastMinor(root, 1) }
