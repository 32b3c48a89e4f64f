// Package mcp measures assent mcp gateway as clients feel it: a call
// that the rules allow beside the same call of the server itself and of
// another proxy, long lists, and what a thousand waiting calls keep in
// memory. Its tests are bars, not gates of every change: make -C bench
// mcp.
package mcp
