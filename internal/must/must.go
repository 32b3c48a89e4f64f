// Package must ends a test where it can't go on. Only tests import it.
package must

// TB is a test: a testing.TB, or a rapid.T.
type TB interface {
	Helper()
	Fatal(args ...any)
}

// Do ends the test when there is an error.
func Do(t TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// Get returns a value, or ends the test when there is an error beside
// it: must.Get(os.ReadFile(name))(t).
func Get[T any](v T, err error) func(t TB) T {
	return func(t TB) T {
		t.Helper()
		Do(t, err)
		return v
	}
}
