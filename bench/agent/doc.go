// Package agent measures the loops of package agent beside a bare one
// that a program would write by hand, on the same scripted model, and
// how fast stored threads are read beside encoding/json. The bars are
// behind a tag: make -C bench loop.
package agent
