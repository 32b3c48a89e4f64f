// Package asking measures approval requests on both stores and compares them with a floor: one
// row in one commit. Its tests are bars that do not run on every change: make -C bench asking.
package asking
