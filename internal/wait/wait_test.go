package wait

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

func TestForEndsWithWhateverComesFirst(t *testing.T) {
	for name, c := range map[string]struct {
		signal, end, takes time.Duration
		err                error
	}{
		"the signal":      {time.Second, time.Hour, time.Second, nil},
		"the time":        {time.Hour, time.Hour, time.Minute, nil},
		"the context":     {time.Hour, time.Second, time.Second, context.Canceled},
		"no time is left": {time.Hour, 0, 0, context.Canceled},
	} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			signal := make(chan struct{})
			time.AfterFunc(c.signal, func() { close(signal) })
			if time.AfterFunc(c.end, cancel); c.end == 0 {
				cancel()
			}

			began := time.Now()
			if err := For(ctx, signal, time.Minute); !errors.Is(err, c.err) || time.Since(began) != c.takes {
				t.Errorf("%s: %v after %v", name, err, time.Since(began))
			}
		})
	}
}

func TestPauseIsAsLongAsAsked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		if err := Pause(t.Context(), time.Minute); err != nil || time.Since(began) != time.Minute {
			t.Errorf("%v after %v", err, time.Since(began))
		}
	})
}
