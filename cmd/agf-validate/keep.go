package main

func (m *mender) keep(in *input) func(before, after []byte) string {
	return func(_, _ []byte) string { return "" }
}
