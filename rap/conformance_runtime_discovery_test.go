package rap_test

import (
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/assent-dev/assent/internal/must"
	"github.com/assent-dev/assent/rap/internal/raptest"
	"github.com/assent-dev/assent/rap/runtime"
)

// offered returns the names of the tools of a session, and the servers that have problems.
func (w *runtimeWorld) offered(session string) (names, troubled []string) {
	w.t.Helper()
	got := must.Get(w.mine.Tools(w.t.Context(), session))(w.t)
	for _, o := range got.Offers {
		names = append(names, o.Server+"/"+o.Name)
	}
	for _, p := range got.Problems {
		if p.Err == nil || p.Err.Error() == "" {
			w.t.Errorf("a problem without words: %+v", p)
		}
		troubled = append(troubled, p.Server)
	}

	slices.Sort(names)
	slices.Sort(troubled)
	return names, slices.Compact(troubled)
}

// offers checks the tools of a session and the servers that have problems.
func (w *runtimeWorld) offers(session string, names, troubled []string) {
	w.t.Helper()
	gotNames, gotTroubled := w.offered(session)
	if !slices.Equal(gotNames, names) || !slices.Equal(gotTroubled, troubled) {
		w.t.Errorf(
			"%s: offered are %q with trouble at %q, want %q and %q",
			session,
			gotNames,
			gotTroubled,
			names,
			troubled,
		)
	}
}

// badManifests returns manifests that must be refused as a whole. Package wire covers those
// that violate the protocol's format.
func badManifests(own, foreign string) map[string]string {
	good := `{"name":"write_file","description":"Writes.","inputSchema":{"type":"object"}}`
	at := func(endpoint, tools string) string {
		return `{"name":"files","endpoint":"` + endpoint + `","tools":[` + tools + `]}`
	}
	return map[string]string{
		"no JSON":                 "<html>",
		"no tools":                at(own+"/invoke", ""),
		"a foreign endpoint":      at(foreign+"/invoke", good),
		"an endpoint with a user": at(strings.Replace(own, "http://", "http://u:p@", 1)+"/invoke", good),
		"an endpoint of metadata": at("http://169.254.169.254/invoke", good),
		"a tool twice":            at(own+"/invoke", good+","+good),
		"a schema that is invalid": at(own+"/invoke",
			good+`,{"name":"b","description":"B.","inputSchema":{"type":"nothing-known"}}`),
	}
}

func testR34(t *testing.T) {
	w := newRuntimeWorld(t)
	w.offers("fine", []string{"files/read_file", "files/write_file", "mail/list_files"}, nil)
	for name, manifest := range badManifests(w.tools.URL, w.other.URL) {
		w.tools.Offers(manifest)
		w.offers("bad-"+name, []string{"mail/list_files"}, []string{"files"})
		w.simply("bad-"+name, "call_1")
		w.gaveUp("bad-"+name, "call_1", runtime.WhyInvalid)
	}

	for name, answer := range map[string]func(w http.ResponseWriter){
		"failing": func(rw http.ResponseWriter) { rw.WriteHeader(http.StatusInternalServerError) },
		"absent":  func(rw http.ResponseWriter) { rw.WriteHeader(http.StatusNotFound) },
		"moved": func(rw http.ResponseWriter) {
			rw.Header().Set("Location", w.other.URL+"/.well-known/rap-toolset")
			rw.WriteHeader(http.StatusFound)
		},
		"cut": func(http.ResponseWriter) { panic(http.ErrAbortHandler) },
		"huge": func(rw http.ResponseWriter) {
			_, _ = io.WriteString(rw, `{"x":"`+strings.Repeat("x", 9<<20)+`"}`)
		},
	} {
		w.tools.Manifests(answer)
		w.offers(name, []string{"mail/list_files"}, []string{"files"})
	}

	w.tools.Exactly("invoke", 0)

	// A session keeps its tools; another session asks again.
	fetched := len(w.tools.Requests("discovery"))
	w.offers("fine", []string{"files/read_file", "files/write_file", "mail/list_files"}, nil)
	w.tools.Exactly("discovery", fetched)
	w.tools.Offers(raptest.Manifest(w.tools.URL+raptest.Endpoint, "write_file"))
	w.offers("new", []string{"files/write_file", "mail/list_files"}, nil)
	w.tools.Exactly("discovery", fetched+1)
	if got := w.tools.Requests("discovery")[0]; got.Method != http.MethodGet ||
		!strings.Contains(got.Header.Get("Accept"), "application/json") {
		t.Errorf("asked with %+v", got)
	}
}

func testR35(t *testing.T) {
	w := newRuntimeWorld(t)
	w.other.Offers(raptest.Manifest(w.other.URL+raptest.Endpoint, "list_files", "write_file"))
	w.offers("t-1", []string{"files/read_file", "mail/list_files"}, []string{"files", "mail"})
	w.simply("t-1", "call_1")
	w.gaveUp("t-1", "call_1", runtime.WhyInvalid)
	c := w.invokes(runtime.Invocation{Thread: "t-1", ID: "call_2", Operation: "read_file"})
	if string(c.Arguments) != "{}" {
		t.Errorf("missing arguments became %s", c.Arguments)
	}
	w.completes(c)
	w.tools.Exactly("invoke", 1)
	w.other.Exactly("invoke", 0)

	// Names are case-sensitive, so these do not collide.
	w.other.Offers(raptest.Manifest(w.other.URL+raptest.Endpoint, "list_files", "Write_file"))
	w.offers("t-2", []string{"files/read_file", "files/write_file", "mail/Write_file", "mail/list_files"}, nil)
}

func testR36(t *testing.T) {
	w := newRuntimeWorld(t)
	for thread, where := range map[string]string{
		"origin":    "",
		"slash":     "/",
		"elsewhere": "/some/other%2Fpath?tool=1&x=%20",
		"below":     "/v1/rap/invoke",
	} {
		w.tools.Offers(raptest.Manifest(w.tools.URL+where, "write_file"))
		uri := map[bool]string{true: "/", false: where}[where == ""]
		before := len(w.tools.Requests(uri))
		w.simply(thread, "call_1")
		r := w.tools.Waits(uri, before+1)[before]
		if c := w.tools.Read(r.Body); c.GroupID != thread || c.ID != "call_1" || r.Method != http.MethodPost {
			t.Errorf("%s: got %+v", thread, r)
		} else {
			w.completes(c)
		}
	}

	w.tools.Exactly("invoke", 0)
}

func testR37(t *testing.T) {
	w := newRuntimeWorld(t)
	say := func(status int) func() { return func() { w.tools.Answers(raptest.Endpoint, status) } }
	for name, tt := range map[string]struct {
		breaks func()
		sent   int
	}{
		"400": {say(400), 1},
		"401": {say(401), 1},
		"404": {say(404), 1},
		"415": {say(415), 1},
		"422": {say(422), 1},
		"429": {say(429), 1},
		"302": {say(302), 1},
		"307": {say(307), 1},
		"500": {say(500), 3},
		"502": {say(502), 3},
		"503": {say(503), 3},
		"cut": {func() {
			w.tools.Drops(raptest.Endpoint)
		}, 3},
	} {
		tt.breaks()
		w.simply(name, "call_1")
		w.gaveUp(name, "call_1", runtime.WhyNotAccepted)
		if n := w.invocations(name + "/call_1"); n != tt.sent {
			t.Errorf("%s: sent %d times, want %d", name, n, tt.sent)
		}
		w.sameBodies(name + "/call_1")
		late := w.tools.Call(name, "call_1")
		gentlyRefused(t, "a result of what was not accepted", late.Send(late.Result("late")))
	}

	for name, status := range map[string]int{"200": 200, "201": 201, "202": 202, "204": 204} {
		say(status)()
		c := w.invoke(name, "call_1")
		w.until(c, "accepted", func(got runtime.Call) bool { return got.State == runtime.CallPending })
		w.completes(c)
	}

	w.tools.On(raptest.Endpoint, func(rw http.ResponseWriter, r *http.Request, _ int) {
		if w.invocations(w.tools.Reads(r).Name()) == 1 {
			rw.WriteHeader(http.StatusServiceUnavailable)
		}
	})
	for _, thread := range []string{"recovers-1", "recovers-2"} {
		c := w.invoke(thread, "call_1")
		w.until(c, "accepted", func(got runtime.Call) bool { return got.State == runtime.CallPending })
		w.tools.Waits("invoke", 2)
		w.sameBodies(c.Name())
		w.completes(c)
	}

	w.tools.Answers(raptest.Endpoint, http.StatusOK)
	w.settles()
	for name := range w.distinctCalls() {
		if n := w.invocations(name); n > 3 {
			t.Errorf("%s was sent %d times", name, n)
		}
	}
}

// sameBodies checks that every attempt at a call sent the same message.
func (w *runtimeWorld) sameBodies(name string) {
	w.t.Helper()
	var first string
	for _, r := range w.tools.Requests("invoke") {
		if w.tools.Read(r.Body).Name() != name {
			continue
		}
		if first == "" {
			first = r.Body
		}
		if r.Body != first {
			w.t.Errorf("sent %s, then %s", first, r.Body)
		}
	}
}
