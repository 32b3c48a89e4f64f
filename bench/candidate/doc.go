// Package candidate measures what the callers of a server feel of
// `assent serve --candidate`. Its tests are bars, not gates of every
// change: make -C bench candidate.
package candidate
