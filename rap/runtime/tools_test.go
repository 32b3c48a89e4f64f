package runtime

import (
	"context"
	"fmt"
	"net/http"
	"testing"

	"github.com/assent-dev/assent/internal/must"
)

func (w *rtWorld) tools(session string) Tools {
	w.t.Helper()
	return must.Get(w.mine.Tools(w.t.Context(), session))(w.t)
}

func TestToolsOfASession(t *testing.T) {
	w := newRTWorld(t)
	for range 3 {
		if got := w.tools("s"); len(got.Offers) != 4 || len(got.Problems) != 0 ||
			got.Offers[0].Server != "files" ||
			got.Offers[0].Name != "read" {
			t.Fatalf("%+v", got)
		}
	}

	in := rtInvocation("a", "read", `{}`)
	in.Ancestors = []string{"s", "mid"}
	must.Get(w.mine.Invoke(t.Context(), in))(t)
	if n := len(w.tool.bodies(toolsetPath)); n != 1 {
		t.Errorf("fetched %d times", n)
	}
	w.tools("other")
	w.pass(toolsFor)
	w.tools("s")
	if n := len(w.tool.bodies(toolsetPath)); n != 3 {
		t.Errorf("fetched %d times", n)
	}
	for n := range 2 * maxSessions {
		w.r.toolsets.claim(fmt.Sprint(n), w.now(), func(*session) {})
	}
	if n := len(w.r.toolsets.of); n != maxSessions {
		t.Errorf("%d sessions are kept", n)
	}
}

func TestToolsAfterTheServerCameBack(t *testing.T) {
	w := newRTWorld(t)
	w.tool.Answers(toolsetPath, http.StatusServiceUnavailable)
	if c := w.invoke("a", "read", `{}`); c.Why != WhyInvalid {
		t.Errorf("%+v", c)
	}
	w.tool.On(toolsetPath, nil)
	w.pass(retryAfter)
	if c := w.invoke("b", "read", `{}`); c.State == CallDone {
		t.Errorf("%+v", c)
	}
}

func TestToolsWaitForNobody(t *testing.T) {
	w := newRTWorld(t)
	late := make(chan struct{})
	w.tool.On(toolsetPath, func(rw http.ResponseWriter, _ *http.Request, _ int) {
		<-late
		rw.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(rw, rtManifest, w.tool.URL)
	})
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		w.tool.Waits(toolsetPath, 1)
		cancel()
	}()
	if _, err := w.mine.Tools(ctx, "t"); err == nil {
		t.Error("no error")
	}
	close(late)
	w.tools("t")
}

func TestCancelWhileSending(t *testing.T) {
	w := newRTWorld(t)
	w.tool.On("/run", func(_ http.ResponseWriter, r *http.Request, _ int) { <-r.Context().Done() })
	w.invoke("a", "read", `{}`)
	w.tool.waits("/run", 1)
	must.Do(t, w.mine.Cancel(t.Context(), "t", "a", ""))
	w.until("the request has ended", w.r.engine.Idle)
	w.ends("a", WhyInterrupted)
	w.settles()
	if n := len(w.tool.bodies("/run")); n != 1 {
		t.Errorf("sent %d times", n)
	}
}
