package testwait

import (
	"fmt"
	"strings"
	"testing"
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

func TestPollGivesUp(t *testing.T) {
	looks := 0
	if poll(50*time.Millisecond, func() bool {
		looks++
		return false
	}) || looks < 2 {
		t.Errorf("looked %d times and did not give up", looks)
	}
}
