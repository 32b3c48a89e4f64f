package upstream

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/assent-dev/assent/internal/must"
	"github.com/assent-dev/assent/mcp/wire"
)

func TestNewsOfAListRestsForTheSettlingTime(t *testing.T) {
	const settle = time.Second
	for name, c := range map[string]struct {
		messages int // each after three tenths of the settling time
		told     int
	}{
		"one message":         {1, 1},
		"several at once":     {4, 1},
		"one after it":        {5, 2},
		"a flood":             {40_000, 10_000},
		"a flood and another": {40_001, 10_001},
	} {
		synctest.Test(t, func(t *testing.T) {
			gone := make(chan struct{})
			defer close(gone)
			server := must.Get(New(Config{Command: []string{"unused"}, Settle: settle}))(t)
			changes := server.newNews(gone)
			told := 0
			go func() {
				for {
					select {
					case list := <-server.Changed():
						if told++; list != "tools/list" {
							t.Errorf("%s: %s has changed", name, list)
						}
					case <-gone:
						return
					}
				}
			}()

			for range c.messages {
				changes.notified(&wire.Message{Method: "notifications/tools/list_changed"})
				<-time.After(3 * settle / 10)
			}
			<-time.After(10 * settle)
			synctest.Wait()
			if told != c.told {
				t.Errorf("%s: %d messages were told %d times, expected %d", name, c.messages, told, c.told)
			}
		})
	}
}
