// Package rap measures a RAP gateway while calls wait for people. It compares the gateway with
// an HTTP handler that only writes one record of the same size to the same kind of store. Its
// tests are bars that do not run on every change: make -C bench rap.
package rap
