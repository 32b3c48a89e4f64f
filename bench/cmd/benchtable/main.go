// Command benchtable measures assent, its peers and hand-written Go on the same decisions in
// one process, and compares the ratios with the bars of the project. It exits 1 if a bar fails
// by more than the noise of the method.
package main

import (
	"flag"
	"fmt"
	"io"
	"os"
	"runtime"
	"time"

	"github.com/assent-dev/assent/bench/internal/model"
	"github.com/assent-dev/assent/bench/internal/subject"
)

func main() {
	rounds := flag.Int("rounds", 400, "bursts of each subject")
	short := flag.Bool("short", false, "60 bursts: about a minute")
	only := flag.String("workload", "", "only this workload: a, b, c or d")
	flag.Parse()
	if *short {
		*rounds = 60
	}
	ok, err := run(os.Stdout, *rounds, *only)
	if err != nil {
		fmt.Fprintln(os.Stderr, "benchtable:", err)
		os.Exit(2)
	}
	if !ok {
		os.Exit(1)
	}
}

func run(w io.Writer, rounds int, only string) (bool, error) {
	start := time.Now()
	fmt.Fprintf(
		w,
		"%s %s/%s, %d CPUs; p10 of %d interleaved bursts\n",
		runtime.Version(),
		runtime.GOOS,
		runtime.GOARCH,
		runtime.GOMAXPROCS(0),
		rounds,
	)
	var tables []*table
	for _, load := range []*model.Workload{model.A(), model.B(), model.C(), model.D(1_000)} {
		if only != "" && only != load.Name {
			continue
		}
		t, err := timed(load, rounds)
		if err != nil {
			return false, err
		}
		t.print(w)
		tables = append(tables, t)
	}

	bars, err := allBars(tables)
	if err != nil {
		return false, err
	}
	ok := printBars(w, bars)
	fmt.Fprintf(w, "\n%.0f s\n", time.Since(start).Seconds())
	return ok, nil
}

// timed builds every subject of a workload, checks that they agree, and measures them together.
// For (d), the same bursts also include assent and the floor with 10,000 policies.
func timed(load *model.Workload, rounds int) (*table, error) {
	entries, err := subjects(load)
	if err != nil {
		return nil, err
	}
	if load.Name == "d" {
		large := model.D(10_000)
		more, err := ownSubjects(large)
		if err != nil {
			return nil, err
		}
		entries = append(entries, more...)
	}

	for _, e := range entries {
		if err := subject.Agree(e.load, e.subject); err != nil {
			return nil, err
		}
	}
	return measured(load, entries, rounds), nil
}

type entry struct {
	load    *model.Workload
	subject *subject.Subject
}

func subjects(load *model.Workload) ([]entry, error) {
	entries, err := ownSubjects(load)
	if err != nil {
		return nil, err
	}
	peers, err := subject.Peers(load)
	if err != nil {
		return nil, err
	}
	return append(entries, with(load, peers)...), nil
}

// ownSubjects returns the floor and assent.
func ownSubjects(load *model.Workload) ([]entry, error) {
	assent, err := subject.Assent(load)
	if err != nil {
		return nil, err
	}
	return with(load, append(subject.Floors(load), assent...)), nil
}

func with(load *model.Workload, subjects []*subject.Subject) []entry {
	out := make([]entry, len(subjects))
	for i, s := range subjects {
		out[i] = entry{load, s}
	}
	return out
}
