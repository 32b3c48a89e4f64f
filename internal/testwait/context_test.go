package testwait

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

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
