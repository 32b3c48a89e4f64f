package wire_test

import (
	"encoding/json"
	"errors"
	"net/url"
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/assent-dev/assent/rap/wire"
	"github.com/assent-dev/assent/value"
)

// fuzz checks that every accepted message is valid, is understood in the same way by a second
// reader, and does not change when it is encoded and parsed again, and that every error has a
// reason.
func fuzz(f *testing.F, name string, check func(t *testing.T, got any)) {
	for _, in := range forms() {
		if strings.HasPrefix(in.name, name) {
			f.Add([]byte(in.body("", "")))
		}
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		got, err := parse(name, body)
		if err != nil {
			why(t, err)
			if i, ok := got.(wire.Invocation); ok {
				partial(t, i)
			}
			return
		}
		if _, err := value.Parse(body, value.Limits{MaxBytes: 16 << 20}); err != nil {
			t.Fatalf("accepted, and not one document: %v", err)
		}
		check(t, got)
		if _, ok := got.(*wire.Toolset); !ok {
			agree(t, body, got)
		}
		out := written(got)
		again, err := parse(name, out)
		if err != nil || !reflect.DeepEqual(again, got) {
			t.Fatalf("%s is %+v, %v\nand was %+v", out, again, err, got)
		}
	})
}

// partial checks that each returned member of a bad invocation is valid.
func partial(t *testing.T, i wire.Invocation) {
	if i.CallbackURL != "" {
		address(t, i.CallbackURL, "http", "https")
	}
	for _, s := range []string{i.ID, i.GroupID} {
		if s != "" {
			id(t, s)
		}
	}
	if i.Operation != "" || i.Arguments != nil || i.Ancestors != nil || i.UserID != "" {
		t.Fatalf("more is told than who sent it: %+v", i)
	}
}

// why checks that an error is an *Error with a reasonable text.
func why(t *testing.T, err error) {
	t.Helper()
	var bad *wire.Error
	if !errors.As(err, &bad) || bad.Expected == "" || len(bad.Error()) > 1200 || !utf8.ValidString(bad.Error()) {
		t.Fatalf("%q", err)
	}
}

func id(t *testing.T, all ...string) {
	t.Helper()
	for _, s := range all {
		if s == "" || len(s) > 8<<10 || !utf8.ValidString(s) {
			t.Fatalf("id %q", s)
		}
	}
}

// address checks that Go's own client would request exactly this URL.
func address(t *testing.T, s string, schemes ...string) {
	t.Helper()
	u, err := url.Parse(s)
	if err != nil || u.Host == "" || u.User != nil || len(s) > 4096 ||
		!strings.Contains(strings.Join(schemes, " "), u.Scheme) {
		t.Fatalf("URL %q", s)
	}
	if rest, ok := strings.CutPrefix(strings.ToLower(s), u.Scheme+"://"+strings.ToLower(u.Host)); !ok ||
		rest != "" && !strings.ContainsRune("/?#", rune(rest[0])) {
		t.Fatalf("URL %q does not begin with its host", s)
	}
	if len(schemes) > 1 && !strings.HasSuffix(s, strings.TrimPrefix(u.RequestURI(), "/")) {
		t.Fatalf("URL %q is requested as %q", s, u.RequestURI())
	}
}

func rawObject(t *testing.T, raw json.RawMessage) {
	t.Helper()
	v, err := value.Parse(raw, value.Limits{MaxBytes: 16 << 20})
	if err != nil || v.Kind != value.Object || raw[0] != '{' {
		t.Fatalf("%s: %v", raw, err)
	}
}

func FuzzToolset(f *testing.F) {
	seeds(f, "toolset")
	f.Add(manifest(tool("a"), tool("b")))
	f.Fuzz(func(t *testing.T, body []byte) {
		got, err := wire.ParseToolset(body)
		if err != nil {
			why(t, err)
			return
		}
		address(t, got.Endpoint, "http", "https")
		if n := utf8.RuneCountInString(got.Name); n < 1 || n > 128 || len(got.Tools) < 1 {
			t.Fatalf("%q, %d tools", got.Name, len(got.Tools))
		}
		names := map[string]bool{}
		for i, tool := range got.Tools {
			rawObject(t, tool.InputSchema)
			if names[tool.Name] || tool.Name == "" || len(tool.Name) > 128 ||
				strings.ContainsFunc(tool.Name, func(r rune) bool {
					return r <= ' ' || r > 'z'
				}) {
				t.Fatalf("tool %q", tool.Name)
			}

			names[tool.Name] = true
			if err := got.Tools[i].CheckArguments(json.RawMessage(`{"a":[1,{"b":null}],"path":"x"}`)); err != nil &&
				!utf8.ValidString(err.Error()) {
				t.Fatalf("%q", err)
			}
		}

		out := got.Append(nil)
		again, err := wire.ParseToolset(out)
		if err != nil || !reflect.DeepEqual(withoutSchemas(again), withoutSchemas(got)) {
			t.Fatalf("%s is %+v, %v\nand was %+v", out, again, err, got)
		}
		for i := range got.Tools {
			if got.Tools[i].Digest() != again.Tools[i].Digest() {
				t.Fatal("written and read again, it is another tool")
			}
		}
	})
}

func FuzzInvocation(f *testing.F) {
	seeds(f, "invocation")
	f.Add([]byte(`{"operation":"o","id":"c","callback_url":"http://a.example/b","group_id":"g","arguments":{"a":tru}}`))
	fuzz(f, "invocation/", func(t *testing.T, got any) {
		i := got.(wire.Invocation)
		id(t, append(i.Ancestors, i.ID, i.GroupID, i.Operation)...)
		address(t, i.CallbackURL, "http", "https")
		rawObject(t, i.Arguments)
	})
}

func FuzzCallback(f *testing.F) {
	seeds(f, "callback")
	fuzz(f, "callback/", func(t *testing.T, got any) {
		c := got.(wire.Callback)
		id(t, c.Group())
		switch c := c.(type) {
		case *wire.Choice:
			id(t, c.Call())
			address(t, c.ResponseURL, "http", "https")
			if len(c.Choices) == 0 || len(c.Choices) > 10_000 || c.Default < 0 || c.Default >= len(c.Choices) {
				t.Fatalf("%d of %d choices", c.Default, len(c.Choices))
			}
		case *wire.Result:
			id(t, c.Call())
			if c.Text == nil && c.Content == nil {
				t.Fatal("neither text nor content")
			}
		case *wire.OAuth:
			id(t, c.Call())
			address(t, c.AuthURL, "https")
		case *wire.View:
			rawObject(t, c.Content)
			if c.Call() != "" {
				t.Fatalf("a view names the call %q", c.Call())
			}
		case *wire.Event:
			id(t, c.Call())
		}
	})
}

func FuzzAnswer(f *testing.F) {
	seeds(f, "answer")
	f.Add([]byte(`{"id":"c","selected":2,"Selected":0}`))
	fuzz(f, "answer/", func(t *testing.T, got any) {
		a := got.(wire.Answer)
		if id(t, a.ID); a.Selected < 0 {
			t.Fatal(a.Selected)
		}
	})
}

func FuzzNotices(f *testing.F) {
	seeds(f, "notice")
	f.Fuzz(func(t *testing.T, body []byte) {
		closing, errClose := wire.ParseCloseThread(body)
		cancel, errCancel := wire.ParseCancelCall(body)
		status, errStatus := wire.ParseStatus(body)
		if wire.Status(cancel) != status || (errCancel == nil) != (errStatus == nil) ||
			errCancel == nil && errClose != nil {
			t.Fatalf("%v %v %v", errClose, errCancel, errStatus)
		}
		if errClose == nil {
			id(t, closing.ThreadID)
			agree(t, body, closing)
		}
		if errCancel == nil {
			id(t, cancel.ThreadID, cancel.ToolCallID)
			agree(t, body, cancel)
		}
		for _, err := range []error{errClose, errCancel, errStatus} {
			if err != nil {
				why(t, err)
			}
		}
	})
}
