package rap_test

import (
	"errors"
	"io"
	"net/http"
	"testing"

	"github.com/assent-dev/assent/rap/runtime"
)

// testR40: only the tool server of a call is asked how the call is. A
// clear no and an answer that makes no sense are a no; silence is not.
// Whatever it says, the call stays as it is, and nobody is told to
// migrate.
func testR40(t *testing.T) {
	w := newRuntimeWorld(t)
	w.asks("t-1", "call_1")
	says := func(status int, text string) func(http.ResponseWriter, *http.Request, int) {
		return func(rw http.ResponseWriter, _ *http.Request, _ int) {
			rw.Header().Set("Content-Type", "application/json")
			rw.WriteHeader(status)
			_, _ = io.WriteString(rw, text)
		}
	}
	for name, c := range map[string]struct {
		answer       func(http.ResponseWriter, *http.Request, int)
		alive, fails bool
	}{
		"yes":      {answer: says(200, `{"alive":true}`), alive: true},
		"no":       {answer: says(200, `{"alive":false}`)},
		"nonsense": {answer: says(200, `{"alive":"yes"}`)},
		"capital":  {answer: says(200, `{"Alive":true}`)},
		"no JSON":  {answer: says(200, `{`)},
		"a list":   {answer: says(200, `[]`)},
		"unknown":  {answer: says(404, ``)},
		"broken":   {answer: says(500, `{"alive":false}`), fails: true},
	} {
		w.tools.On("/tool_call_status", c.answer)
		alive, err := w.mine.Alive(t.Context(), "t-1", "call_1")
		if alive != c.alive || (err != nil) != c.fails {
			t.Errorf("%s: %t, %v", name, alive, err)
		}
	}

	w.tools.Drops("/tool_call_status")
	if alive, err := w.mine.Alive(t.Context(), "t-1", "call_1"); alive || err == nil {
		t.Errorf("no connection: %t, %v", alive, err)
	}
	if _, err := w.mine.Alive(t.Context(), "t-1", "call_2"); !errors.Is(err, runtime.ErrNoCall) {
		t.Errorf("a call that is not there: %v", err)
	}
	w.other.Exactly("status", 0)
	if got := w.tools.Requests("/migrate"); len(got) != 0 {
		t.Errorf("told to migrate: %v", got)
	}
	if call, err := w.mine.Call(t.Context(), "t-1", "call_1"); err != nil || call.Question == "" {
		t.Errorf("the call became %+v, %v", call, err)
	}
}
