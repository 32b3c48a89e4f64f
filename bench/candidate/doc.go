// Package candidate measures how `assent serve --candidate` affects the callers of a server.
// Its tests are bars that do not run on every change: make -C bench candidate.
package candidate
