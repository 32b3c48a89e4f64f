// Command neighbours checks the bars of a real assent server while one tenant sends its worst
// traffic. The bars limit the time of decisions of another tenant, the time to sign in and to
// answer, and the memory of the server.
package main

import (
	"context"
	"flag"
	"fmt"
	"maps"
	"os"
	"os/signal"
	"slices"
	"strings"
	"time"

	"github.com/assent-dev/assent/bench/internal/neighbours"
)

// The bars.
const (
	barDecide = 50 * time.Millisecond // the decisions of another tenant, at the 99th percentile
	barSignIn = 5 * time.Second       // the slowest sign-in; the provider takes 0.7 s of it
	barAnswer = 3 * time.Second       // the slowest page and vote
	barMemory = 1 << 30               // bytes
)

func main() {
	if neighbours.Noisy() {
		return
	}
	bin := flag.String("bin", "bin/assent", "the assent `BINARY`")
	long := flag.Duration("for", 30*time.Second, "how long the noise lasts, a minute at most")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, *bin, *long); err != nil {
		fmt.Fprintln(os.Stderr, "neighbours:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, bin string, long time.Duration) error {
	fmt.Printf("load before: %s\n", loadAverage())
	r, err := neighbours.Run(ctx, neighbours.Config{
		Bin:   bin,
		Noise: neighbours.Worst(),
		For:   long,
	})
	if err != nil {
		return err
	}
	fmt.Printf("what became of the noise, load after: %s\n", loadAverage())
	for _, what := range slices.Sorted(maps.Keys(r.Noise)) {
		fmt.Printf("  %-26s %d\n", what, r.Noise[what])
	}
	fmt.Printf("  posts to the provider      %d\n", r.Posts)
	missed := 0
	bar := func(what string, ok bool, format string, args ...any) {
		word := "holds "
		if !ok {
			word = "MISSED"
			missed++
		}
		fmt.Printf("%s  %-24s %s\n", word, what, fmt.Sprintf(format, args...))
	}
	fmt.Printf("another tenant's decide: %s before, %s during\n", times(r.Before), times(r.During))
	bar("decide, p99", r.During.At(0.99) < barDecide, "%v of %v", r.During.At(0.99), barDecide)
	bar("sign-ins", len(r.SignIns) > 0 && slices.Max(r.SignIns) < barSignIn, "%d, the slowest %v of %v",
		len(r.SignIns), worst(r.SignIns), barSignIn)
	bar("answers", len(r.Answers) > 0 && slices.Max(r.Answers) < barAnswer, "%d, the slowest %v of %v",
		len(r.Answers), worst(r.Answers), barAnswer)
	bar("memory", r.Memory < barMemory, "%d MiB of %d MiB", r.Memory>>20, barMemory>>20)
	bar("failures", len(r.Failures) == 0, "%d %.500s", len(r.Failures), strings.Join(r.Failures, "; "))
	bar("faults of the server", len(r.Faults) == 0, "%d %.500s", len(r.Faults), strings.Join(r.Faults, "; "))
	if missed > 0 {
		return fmt.Errorf("%d bars missed", missed)
	}
	return nil
}

func times(t neighbours.Times) string {
	return fmt.Sprintf(
		"%d, p50 %v, p99 %v, slowest %v",
		len(t),
		round(t.At(0.5)),
		round(t.At(0.99)),
		round(t.At(1)),
	)
}

func worst(all []time.Duration) time.Duration {
	if len(all) == 0 {
		return 0
	}
	return round(slices.Max(all))
}

func round(d time.Duration) time.Duration { return d.Round(100 * time.Microsecond) }

// loadAverage returns the load averages of the kernel.
func loadAverage() string {
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "unknown"
	}
	return strings.TrimSpace(string(text))
}
