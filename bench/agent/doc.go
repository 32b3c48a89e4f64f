// Package agent measures the loops of package agent and compares them with a bare loop, as a
// program would write it by hand. All loops use the same scripted model. It also compares the
// reading of stored threads with encoding/json. A build tag enables the bars: make -C bench
// loop.
package agent
