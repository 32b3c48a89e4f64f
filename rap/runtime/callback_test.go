package runtime

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	goruntime "runtime"
	"strings"
	"testing"
	"time"

	"github.com/assent-dev/assent/internal/durable"
	"github.com/assent-dev/assent/internal/must"
	"github.com/assent-dev/assent/rap"
	"github.com/assent-dev/assent/rap/internal/names"
	"github.com/assent-dev/assent/rap/wire"
	"github.com/assent-dev/assent/store"
)

func TestCallbackBodyThatStops(t *testing.T) {
	w := newRTWorld(t)
	w.sent("a")
	req := httptest.NewRequest("POST", "/"+w.kept("a").Part.Token, stopping{})
	req.Header.Set("Content-Type", "application/json")
	rec := httptest.NewRecorder()
	if w.r.ServeHTTP(rec, req); rec.Code != http.StatusBadRequest {
		t.Errorf("answered with %d", rec.Code)
	}
}

type stopping struct{}

func (stopping) Read([]byte) (int, error) { return 0, errors.New("the connection is gone") }

// A callback for a call that was not sent yet is refused: the tool can't know its URL.
func TestCallbackBeforeTheCallLeft(t *testing.T) {
	w := newRTWorld(t)
	w.invoke("a", "send", `{"to":"bob"}`)
	for _, m := range []wire.Callback{rtResult("a", "done"), w.choice("a", "1")} {
		if code := w.calls("a", m); code != http.StatusNotFound {
			t.Errorf("answered with %d", code)
		}
	}
	w.is("a", CallAsking)
}

// rtStore is a store that fails on demand.
type rtStore struct {
	store.Records
	fails func() error
}

func (s *rtStore) PutRecord(ctx context.Context, r store.Record) (int64, error) {
	if err := s.fails(); err != nil {
		return 0, err
	}
	return s.Records.PutRecord(ctx, r)
}

func (s *rtStore) Record(ctx context.Context, room, key string) (store.Record, error) {
	if err := s.fails(); err != nil {
		return store.Record{}, err
	}
	return s.Records.Record(ctx, room, key)
}

func (s *rtStore) RecordByAlias(ctx context.Context, room, alias string) (store.Record, error) {
	if err := s.fails(); err != nil {
		return store.Record{}, err
	}
	return s.Records.RecordByAlias(ctx, room, alias)
}

func (s *rtStore) DueRecords(ctx context.Context, room string, now time.Time, limit int) ([]store.Record, error) {
	return s.Records.DueRecords(ctx, room, now, limit)
}

func TestWhoseStoreFails(t *testing.T) {
	w := newRTWorld(t)
	lost := errors.New("the disk is gone")
	var broken error
	w.stop()
	w.cfg.Records = &rtStore{w.store, func() error {
		w.mu.Lock()
		defer w.mu.Unlock()
		return broken
	}}
	w.start()
	w.sent("a")
	token, result := w.kept("a").Part.Token, string(rtResult("a", "done").Append(nil))
	w.sets(func() { broken = lost })
	if code := w.posts(token, result); code != http.StatusServiceUnavailable {
		t.Errorf("answered with %d", code)
	}
	if _, err := w.mine.Invoke(t.Context(), rtInvocation("b", "read", `{}`)); !errors.Is(err, lost) {
		t.Errorf("invoked: %v", err)
	}
	for name, err := range map[string]error{
		"cancel": w.mine.Cancel(t.Context(), "t", "a", ""),
		"close":  w.mine.CloseThread(t.Context(), "t"),
	} {
		if !errors.Is(err, lost) {
			t.Errorf("%s: %v", name, err)
		}
	}

	if _, err := w.mine.Wait(t.Context(), "t", "a"); !errors.Is(err, lost) {
		t.Errorf("waited: %v", err)
	}
	w.sets(func() { broken = nil })
	if code := w.posts(token, result); code != http.StatusOK {
		t.Errorf("answered with %d", code)
	}
	w.ends("a", "")
}

// No body can cause a panic, a hang or the end of another call, and the call itself ends only
// by a result.
func FuzzCallback(f *testing.F) {
	w := newRTWorld(f)
	for _, m := range []wire.Callback{
		rtResult("a", "done"), rtResult("b", "done"), w.choice("a", "1"), &wire.OAuth{
			GroupID: "t",
			ID:      "a",
			AuthURL: "https://x/",
		},
		&wire.Event{
			GroupID:    "t",
			ToolCallID: "a",
			Text:       "news",
			Final:      true,
		}, &wire.View{GroupID: "t", ViewType: "diff", Content: []byte("{}")},
	} {
		f.Add(m.Append(nil))
	}

	f.Add([]byte(`{"type":"tool_result","group_id":"t","id":"a"}`))
	f.Add(
		[]byte(
			`{"type":"user_choice","group_id":"t","id":"a","prompt":"?","choices":[""],"default":1e0,` +
				`"response_url":"//x"}`,
		),
	)
	w.stop() // only callbacks are handled from here on
	f.Fuzz(func(t *testing.T, body []byte) {
		w.cfg.Records = rap.NewMemory()
		r := must.Get(New(w.cfg))(t)
		threads := must.Get(r.As(rtAsker()))(t)
		for _, id := range []string{"a", "b"} {
			c := &call{
				Key:       w.key(id),
				Alias:     durable.Hash(id),
				Asker:     rtAsker(),
				State:     durable.Away,
				Arguments: []byte("{}"),
				Deadline:  w.now().Add(time.Hour),
				Run:       durable.Attempt{Tries: 1},
				Part: part{
					Wire:      names.Sent{Group: "t", ID: id},
					Thread:    "t",
					ID:        id,
					Server:    "files",
					Operation: "read",
					Token:     id,
				},
			}
			must.Do(t, r.engine.Add(t.Context(), c))
		}

		req := httptest.NewRequest("POST", "/a", strings.NewReader(string(body)))
		req.Header.Set("Content-Type", "application/json")
		rec := httptest.NewRecorder()
		r.ServeHTTP(rec, req)
		own, err1 := threads.Call(t.Context(), "t", "a")
		other, err2 := threads.Call(t.Context(), "t", "b")
		if err := errors.Join(err1, err2); err != nil || other.State != CallPending || other.Question != "" ||
			other.SignIn != "" {
			t.Fatalf("the other call: %+v, %v", other, err)
		}
		m, bad := wire.ParseCallback(body)
		result, ends := m.(*wire.Result)
		ends = bad == nil && ends && result.GroupID == "t" && result.ID == "a"
		if (own.State == CallDone) != ends || ends != (rec.Code == 200) && ends {
			t.Fatalf("the call is %s after %d", own.State, rec.Code)
		}
		if rec.Code != 200 && rec.Code/100 != 4 {
			t.Fatalf("answered with %d", rec.Code)
		}
		for !r.engine.Idle() {
			goruntime.Gosched()
		}
	})
}
