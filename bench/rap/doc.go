// Package rap measures a RAP gateway while people are waited for,
// beside an HTTP handler that does nothing but write one record of the
// same size to the same kind of store. Its tests are bars, not gates of
// every change: make -C bench rap.
package rap
