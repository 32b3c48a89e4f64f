package testwait

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestValueWaitsForAnotherGoroutine(t *testing.T) {
	var log Buffer
	go func() {
		for n := range 1000 {
			fmt.Fprintln(&log, "line", n)
		}
	}()

	last := Value(t, "the last line", func() (string, bool) {
		text := log.String()
		return text, strings.HasSuffix(text, "line 999\n")
	})

	if n := strings.Count(last, "\n"); n != 1000 {
		t.Errorf("got %d lines", n)
	}
}

func TestWaitEndsWithTheTimeOfTheTest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log strings.Builder
		began := time.Now()
		const patience = 101 * time.Second // there is surely a look after 100 s
		w := waiter[int]{
			name: "TestX", what: "the seventh", patience: patience, stuck: 30 * time.Second, log: &log,
			look: func() (int, bool) { return int(time.Since(began) / (50 * time.Second)), false },
		}

		last, ok := w.wait()
		if ok || last != 2 || time.Since(began) != patience {
			t.Errorf("got %d, %t after %v", last, ok, time.Since(began))
		}

		// The state changes after 50 s, so the silence before and after it is
		// reported once each.
		const line = "TestX: no progress for 30s: waiting for the seventh; state: "
		if want := line + "0\n" + line + "1\n"; log.String() != want {
			t.Errorf("got %q, want %q", log.String(), want)
		}
	})
}

func TestPatienceLeavesTimeToFail(t *testing.T) {
	for _, c := range []struct{ left, want time.Duration }{
		{10 * time.Minute, 10*time.Minute - reserve},
		{50 * time.Second, 45 * time.Second},
		{0, longest},
	} {
		if got := patience(timed{t, c.left}).Round(time.Second); got != c.want {
			t.Errorf("with %v left, the wait lasts %v, want %v", c.left, got, c.want)
		}
	}
	if got := patience(&testing.B{}); got != longest {
		t.Errorf("a benchmark waits %v", got)
	}
}

type timed struct {
	testing.TB
	left time.Duration
}

func (t timed) Deadline() (time.Time, bool) { return time.Now().Add(t.left), t.left > 0 }

func TestReceive(t *testing.T) {
	values := make(chan int)
	go func() { values <- 7 }()
	if got := Receive(t, "a number", values); got != 7 {
		t.Errorf("got %d", got)
	}
	close(values)
	Receive(t, "the end", values)

	synctest.Test(t, func(t *testing.T) {
		failing := &fatal{timed: timed{t, time.Minute}}
		began := time.Now()
		func() {
			defer func() {
				if v := recover(); v != errFatal {
					panic(v)
				}
			}()
			Receive(failing, "nothing", make(chan int))
		}()
		if took := time.Since(began); took != 54*time.Second {
			t.Errorf("gave up after %v", took)
		}
	})
}

func TestContextEndsBeforeTheDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		<-Context(timed{t, 10 * time.Minute}).Done()
		if took := time.Since(began); took != 10*time.Minute-reserve {
			t.Errorf("ended after %v", took)
		}
	})
}

var errFatal = errors.New("the test failed")

// fatal stops the caller when the test fails.
type fatal struct{ timed }

func (*fatal) Helper()               {}
func (*fatal) Fatalf(string, ...any) { panic(errFatal) }
