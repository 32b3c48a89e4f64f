// Package asking measures the asking half on both stores beside its
// floor: one row, one commit. Its tests are bars, not gates of every
// change: make -C bench asking.
package asking
