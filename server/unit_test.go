package server

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/server/openapi"
	"github.com/assent-dev/assent/server/plans"
	"github.com/assent-dev/assent/store"
)

func TestProblemOf(t *testing.T) {
	for _, m := range openapi.Meanings() {
		if m.Err == nil {
			continue
		}
		p := problemOf(fmt.Errorf("deep inside: %w", m.Err))
		if p.Code != m.Code || p.Status != m.Status || !errors.Is(p, m.Err) ||
			strings.Contains(p.Error(), "deep inside") {
			t.Errorf("%v: got %+v", m.Err, p)
		}
	}

	for _, c := range []struct {
		err  error
		code openapi.Code
	}{
		{&approval.InputError{Field: "f", Expected: "e"}, openapi.CodeInvalid},
		{&plans.UnusableError{Agent: "a", Why: []string{"w"}}, openapi.CodeAgentUnusable},
		{store.ErrUnavailable, openapi.CodeUnavailable},
		{errors.New("anything else"), openapi.CodeUnavailable},
		{context.Canceled, openapi.CodeUnavailable},
		{fail(openapi.CodeTooMany, "x").in("f").about("r"), openapi.CodeTooMany},
	} {
		w := httptest.NewRecorder()
		problemOf(fmt.Errorf("wrapped: %w", c.err)).write(w)
		if !strings.Contains(w.Body.String(), `"code":"`+string(c.code)+`"`) ||
			w.Code != openapi.MeaningOf(c.code).Status ||
			strings.Contains(w.Body.String(), "anything else") {
			t.Errorf("%v: got %d %s", c.err, w.Code, w.Body)
		}
	}
}

// TestWorkers checks that a failure is logged once, makes the pauses longer, and is reset
// by a success.
func TestWorkers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		var at []time.Duration
		began := time.Now()
		state := map[string]error{}
		w := &worker{
			name:  "work",
			every: time.Minute,
			log:   slog.New(slog.NewTextHandler(&log, nil)),
			report: func(name string, err error) {
				state[name] = err
			},
			do: func(context.Context) error {
				switch at = append(at, time.Since(began)); {
				case len(at) == 2:
					panic("broken")
				case len(at) < 5:
					return errors.New("lost")
				}

				return nil
			},
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		w.run(ctx)
		want := []time.Duration{
			0,
			500 * time.Millisecond,
			1500 * time.Millisecond,
			3500 * time.Millisecond,
			7500 * time.Millisecond,
		}
		if fmt.Sprint(at) != fmt.Sprint(want) {
			t.Errorf("worked at %v, want %v", at, want)
		}
		if n := strings.Count(log.String(), "fails"); n != 1 || strings.Count(log.String(), "goes on") != 1 ||
			state["work"] != nil {
			t.Errorf("got %s, %v", log.String(), state)
		}
	})
}

func TestWorkersAreWoken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		wake, n := make(chan struct{}, 1), 0
		w := &worker{
			every:  time.Hour,
			wake:   wake,
			log:    slog.New(slog.DiscardHandler),
			report: func(string, error) {},
			do: func(context.Context) error {
				n++
				return nil
			},
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() {
			w.run(ctx)
			close(done)
		}()
		synctest.Wait()
		wake <- struct{}{}
		synctest.Wait()
		cancel()
		<-done
		if n != 2 {
			t.Errorf("worked %d times", n)
		}
	})
}

// TestReadinessIsCheap checks that a client that polls /readyz causes one read of the store
// a second.
func TestReadinessIsCheap(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		asked := 0
		var log bytes.Buffer
		h := &health{
			now:     time.Now,
			log:     slog.New(slog.NewTextHandler(&log, nil)),
			failing: map[string]bool{},
			checks: []Check{{
				Name: "store",
				Check: func(context.Context) error {
					asked++
					if asked == 2 || asked == 3 {
						return errors.New("user x at db.internal is gone")
					}
					return nil
				},
			}},
		}
		for range 100 {
			if !h.ready().Ok {
				t.Fatal("red")
			}
		}
		<-time.After(checkAge) // of the bubble
		if got := h.ready(); got.Ok || got.Checks[0].Problem != "failing" || asked != 2 {
			t.Errorf("got %+v after %d questions", got, asked)
		}
		<-time.After(checkAge)
		h.ready()
		if n := strings.Count(log.String(), "db.internal"); n != 1 {
			t.Errorf("the details were logged %d times:\n%s", n, log.String())
		}
		<-time.After(checkAge)
		if got := h.ready(); !got.Ok || !strings.Contains(log.String(), "passes again") {
			t.Errorf("got %+v and the log\n%s", got, log.String())
		}
	})
}

// FuzzBody checks that no body makes the reader panic, and that accepted bodies have each
// known field at most once.
func FuzzBody(f *testing.F) {
	for _, s := range []string{
		``,
		`{}`,
		`[]`,
		`{"call":{"kind":"tool","tool":"x","args":{"a":1}},"replaces":"r"}`,
		`{"verdict":"approve","binding":"b","shown_fully":true,"grant":{"max_uses":3,"bounds":[{"path":"a",` +
			`"kind":"at_most"}],"max_age":"8h"}}`,
		`{"scopes":["a"],"scopes":["b"]}`,
		`{"max_uses":1e400}`,
		"{\"reason\":\"\xff\"}",
		`{"grant":{"max_uses":-1}}`,
		`{"grant":{"bounds":[{}]}}`,
		`{"grant":{"max_uses":2.5}}`,
		`{"question":{"asker":"a","prompt":"p","choices":["","x"],"default":1,"groups":["g"]},"choice":0}`,
		`{"question":{"choices":[1]}}`,
		`{"choice":-1}`,
	} {
		f.Add([]byte(s))
	}

	f.Fuzz(func(t *testing.T, body []byte) {
		in := object(
			body,
			"",
			"call",
			"replaces",
			"verdict",
			"binding",
			"shown_fully",
			"grant",
			"scopes",
			"reason",
			"expires_in",
			"question",
			"choice",
		)
		call := in.call("call")
		offer := in.grant("grant")
		reason := in.reason()
		in.text("verdict")
		in.flag("shown_fully")
		in.texts("scopes")
		age := in.duration("expires_in")
		question, choice := in.question("question"), in.choice("choice")
		if in.err != nil {
			p := problemOf(in.err)
			if p.Code != openapi.CodeBadRequest && p.Code != openapi.CodeInvalid || p.Detail == "" {
				t.Fatalf("got %v", in.err)
			}
			return
		}

		if call != nil && call.Kind == "" || age < 0 || utf8.RuneCountInString(reason) > longestReason ||
			offer != nil && (offer.MaxUses < 0 || offer.MaxAge < 0) ||
			question.Default < 0 ||
			choice != nil && *choice < 0 {
			t.Fatalf("let through %+v %+v %v %+v %v", call, offer, age, question, choice)
		}
	})
}
