// Package hook measures `assent hook`, which runs before every tool call of a coding agent. Its
// tests are bars that do not run on every change: make -C bench hook.
package hook
