package gateway

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/assent-dev/assent/rap"
)

// TestD10_AnswersAfterACancellationAreNotThere: a relayed question is
// nobody's once its run was told to stop, as the rules' own questions
// are.
func TestD10_AnswersAfterACancellationAreNotThere(t *testing.T) {
	stuck := make(chan struct{})
	h := newHarness(t, func(c *Config) {
		c.Operations[1].Run = func(ctx context.Context, job rap.Job) (rap.Outcome, error) {
			_, err := job.Ask(ctx, "Really?", []string{"Yes", "No"}, 1)
			<-stuck // it is slow to stop
			return rap.Outcome{}, err
		}
	})
	t.Cleanup(sync.OnceFunc(func() { close(stuck) }))
	h.mustInvoke("c1", h.cfg.Operations[1].Name, `{}`)
	q := h.runtime.choice("c1")
	h.post("/cancel_tool_call", `{"thread_id":"thread","tool_call_id":"c1"}`)
	if code := h.answer(q, 0); code != http.StatusNotFound {
		t.Errorf("the answer after the cancellation: %d", code)
	}
	stuck <- struct{}{}
	if got := h.runtime.result("c1"); !strings.HasPrefix(got, "Error: ") {
		t.Errorf("result %q", got)
	}
	if code := h.answer(q, 0); code != http.StatusNotFound {
		t.Errorf("the answer after the end: %d", code)
	}
}
