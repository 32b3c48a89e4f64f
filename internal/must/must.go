// Package must ends a test that can't go on after an error. Only tests import it.
package must

// TB is a test: a testing.TB, or a rapid.T.
type TB interface {
	Helper()
	Fatal(args ...any)
}

// Do ends the test if err is not nil.
func Do(t TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// Get returns a value, or ends the test if the error that came with it is not nil:
// must.Get(os.ReadFile(name))(t).
func Get[T any](v T, err error) func(t TB) T {
	return func(t TB) T {
		t.Helper()
		Do(t, err)
		return v
	}
}
