package replay

import (
	"bytes"
	"errors"
	"flag"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/assent-dev/assent/internal/golden"
	"github.com/assent-dev/assent/internal/must"
)

// ask sends one request and returns the response.
func ask(t *testing.T, method, url, body string, headers ...string) (int, string, error) {
	t.Helper()
	q := must.Get(http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body)))(t)
	for i := 0; i+1 < len(headers); i += 2 {
		q.Header.Set(headers[i], headers[i+1])
	}
	r, err := http.DefaultClient.Do(q)
	if err != nil {
		return 0, "", err
	}
	defer func() { _ = r.Body.Close() }()
	text, err := io.ReadAll(r.Body)
	return r.StatusCode, string(text), err
}

func serve(t *testing.T, src string) *Server {
	t.Helper()
	transcript := must.Get(Parse([]byte(src)))(t)
	return must.Get(Serve(transcript))(t)
}

func TestFile(t *testing.T) {
	s := New(t, "things.json")
	if status, text, err := ask(t, "POST", s.URL()+"/v1/things?x=1", `{"b":[1.0,"ü"],"a":null}`, "Authorization",
		"Bearer test"); status != 201 || text != `{"id": 7}` || err != nil {
		t.Errorf("got %d %q %v", status, text, err)
	}

	want := "event: start\ndata: {\"n\":1.50}\n\ndata: [1,2]\n\n: comment\n\n"
	if status, text, err := ask(t, "GET", s.URL()+"/v1/stream", ""); status != 200 || text != want || err != nil {
		t.Errorf("got %d %q %v", status, text, err)
	}
	if _, text, err := ask(t, "POST", s.URL()+"/v1/cut", ""); text != "0123" || !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("got %q %v", text, err)
	}
	if _, text, err := ask(t, "POST", s.URL()+"/v1/cut", ""); text != "data: 1\n\n" ||
		!errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("got %q %v", text, err)
	}
}

const one = `[{"request":{"path":"/a","headers":{"X-Key":"k","X-Not":""},"body":{"n":1,"list":[{"a":1},2],"s":"x"}},` +
	`"response":{"body":{}}}]`

func TestDifferences(t *testing.T) {
	same := `{"s":"x","list":[{"a":1},2],"n":1}`
	cases := map[string]struct {
		method, path, body, key, not string
		want                         []string
	}{
		"same":           {"POST", "/a", same, "k", "", nil},
		"method":         {"PUT", "/a", same, "k", "", []string{`method: want "POST", got "PUT"`}},
		"path":           {"POST", "/a?q", same, "k", "", []string{`path: want "/a", got "/a?q"`}},
		"header":         {"POST", "/a", same, "j", "", []string{`header X-Key: want "k", got "j"`}},
		"header to miss": {"POST", "/a", same, "k", "1", []string{`header X-Not: want "", got "1"`}},
		"number text": {
			"POST",
			"/a",
			`{"s":"x","list":[{"a":1},2],"n":1.0}`,
			"k",
			"",
			[]string{"body.n: want 1, got 1.0"},
		},
		"missing": {
			"POST",
			"/a",
			`{"list":[{}],"n":1}`,
			"k",
			"",
			[]string{"body.list[0].a: missing, want 1", "body.list[1]: missing, want 2", `body.s: missing, want "x"`},
		},
		"surplus": {
			"POST",
			"/a",
			`{"s":"x","list":[{"a":1},2,3],"n":1,"z":"<"}`,
			"k",
			"",
			[]string{"body.list[2]: surplus, got 3", `body.z: surplus, got "<"`},
		},
		"kind": {
			"POST",
			"/a",
			`{"s":[],"list":{},"n":"1"}`,
			"k",
			"",
			[]string{"body.list: want [", `body.n: want 1, got "1"`, `body.s: want "x", got []`},
		},
		"other kind": {"POST", "/a", `[]`, "k", "", []string{"body: want {"}},
		"no body":    {"POST", "/a", ``, "k", "", []string{"body: want {", "got none"}},
		"twice":      {"POST", "/a", `{"n":1,"n":1}`, "k", "", []string{"body: ", "duplicate"}},
		"no JSON":    {"POST", "/a", `x`, "k", "", []string{"body: "}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			s := serve(t, one)
			headers := []string{"X-Key", c.key}
			if c.not != "" {
				headers = append(headers, "X-Not", c.not)
			}
			status, text, err := ask(t, c.method, s.URL()+c.path, c.body, headers...)
			must.Do(t, err)
			differs := s.Close()
			if c.want == nil {
				if status != 200 || differs != nil {
					t.Fatalf("got %d %q, %v", status, text, differs)
				}
				return
			}

			if status != Refused || differs == nil {
				t.Fatalf("got %d, %v", status, differs)
			}
			for _, want := range c.want {
				if !strings.Contains(differs.Error(), want) || !strings.Contains(text, want) {
					t.Errorf("%q is not told in %v, or not in the answer %s", want, differs, text)
				}
			}
		})
	}
}

func TestManyDifferences(t *testing.T) {
	lines := compareBodies([]byte(`[`+strings.Repeat("1,", 40)+`1]`), []byte(`[]`))
	if len(lines) != mostLines+1 || !strings.Contains(lines[mostLines], "21 more") {
		t.Errorf("got %d lines, the last is %s", len(lines), lines[len(lines)-1])
	}
}

func TestMissingAndSurplus(t *testing.T) {
	s := serve(t,
		`[{"request":{"method":"GET","path":"/a"},"response":{"body":{}}},{"request":{"path":"/b"},"response":{}}]`)
	if err := s.Close(); err == nil || !strings.Contains(err.Error(), "missing: GET /a") ||
		!strings.Contains(err.Error(), "missing: POST /b") {
		t.Errorf("got %v", err)
	}
	s = serve(t, `[]`)
	if status, _, err := ask(t, "POST", s.URL()+"/a", "{}"); status != Refused || err != nil {
		t.Errorf("got %d %v", status, err)
	}
	if err := s.Close(); err == nil || !strings.Contains(err.Error(), "surplus: POST /a") {
		t.Errorf("got %v", err)
	}
}

func TestParseRefuses(t *testing.T) {
	for name, src := range map[string]string{
		"no JSON":        `[`,
		"duplicate key":  `[{"request":{"path":"/a","path":"/b"},"response":{}}]`,
		"unknown member": `[{"request":{"path":"/a"},"response":{"sees":[]}}]`,
		"no path":        `[{"request":{},"response":{}}]`,
		"two answers":    `[{"request":{"path":"/a"},"response":{"text":"x","body":1}}]`,
		"event":          `[{"request":{"path":"/a"},"response":{"sse":[1]}}]`,
		"unknown event":  `[{"request":{"path":"/a"},"response":{"sse":[{"dat":1}]}}]`,
		"event, no data": `[{"request":{"path":"/a"},"response":{"sse":[{"event":"x"}]}}]`,
	} {
		if _, err := Parse([]byte(src)); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}

	if _, err := Serve(Transcript{{}}); err == nil {
		t.Error("Serve plays a request without a path")
	}
	if _, err := Load("testdata/nowhere.json"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("got %v", err)
	}
	bad := filepath.Join(t.TempDir(), "bad.json")
	must.Do(t, os.WriteFile(bad, []byte("{}"), 0o600))
	if _, err := Load(bad); err == nil || !strings.Contains(err.Error(), bad) {
		t.Errorf("got %v", err)
	}
}

// recorder simulates a test: it records failures, and runs the cleanups on request.
type recorder struct {
	testing.TB
	cleanups []func()
	errors   []string
}

func (r *recorder) Helper()                     {}
func (r *recorder) Cleanup(f func())            { r.cleanups = append(r.cleanups, f) }
func (r *recorder) Errorf(f string, all ...any) { r.errors = append(r.errors, f) }
func (r *recorder) end() {
	for _, f := range r.cleanups {
		f()
	}
}

func TestNewFailsTheTest(t *testing.T) {
	r := &recorder{TB: t}
	New(r, "things.json")
	r.end()
	if len(r.errors) != 1 {
		t.Errorf("got %v", r.errors)
	}
}

func setUpdate(t *testing.T, v string) {
	t.Helper()
	must.Do(t, flag.Set("update", v))
	if golden.Update() != updating() {
		t.Fatal("the flag of package golden is another")
	}
}

func TestUpdate(t *testing.T) {
	setUpdate(t, "true")
	defer setUpdate(t, "false")
	t.Chdir(t.TempDir())
	must.Do(t, os.Mkdir("testdata", 0o700))
	must.Do(t, os.WriteFile("testdata/a.json", []byte(one), 0o600))
	r := &recorder{TB: t}
	s := New(r, "a.json")
	if status, _, err := ask(t, "PUT", s.URL()+"/b", `{"x": 1.0}`, "X-Key", "other"); status != 200 || err != nil {
		t.Errorf("got %d %v", status, err)
	}
	r.end()
	written := must.Get(Load("testdata/a.json"))(t)
	q := written[0].Request
	if q.Method != "PUT" || q.Path != "/b" || q.Headers["X-Key"] != "other" || !bytes.Contains(q.Body, []byte("1.0")) ||
		len(r.errors) > 0 {
		t.Errorf("got %+v, %v", q, r.errors)
	}
}

func FuzzParse(f *testing.F) {
	things := must.Get(os.ReadFile("testdata/things.json"))(f)
	f.Add(things)
	f.Add([]byte(one))
	f.Fuzz(func(t *testing.T, src []byte) {
		transcript, err := Parse(src)
		if err != nil {
			return
		}
		var out bytes.Buffer
		must.Do(t, transcript.write(&out))
		again, err := Parse(out.Bytes())
		if err != nil || len(again) != len(transcript) {
			t.Errorf("%s is written as %s: %v", src, out.Bytes(), err)
		}
	})
}
