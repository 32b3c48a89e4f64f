// Package hook measures what stands before every tool of a coding agent
// that runs `assent hook`. Its tests are bars, not gates of every
// change: make -C bench hook.
package hook
