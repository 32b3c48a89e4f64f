package main_test

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/imports/wasi_snapshot_preview1"

	"github.com/assent-dev/assent/internal/testtier"
)

// mostBytes limits the size of the module; the documentation names it.
const mostBytes = 17_100_000 // with the time zones and the tables of international host names

// module is the engine in a runtime that nobody here wrote.
type module struct {
	t   testing.TB
	ctx context.Context
	api.Module
}

// compiled is the module of all tests, built and compiled once.
var compiled struct {
	once    sync.Once
	runtime wazero.Runtime
	code    wazero.CompiledModule
}

func compile(t testing.TB) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "assent.wasm")
	if out, err := exec.Command("./build", path).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if len(text) > mostBytes {
		t.Errorf("the module has %d bytes, more than %d", len(text), mostBytes)
	}

	ctx := context.Background()
	r := wazero.NewRuntime(ctx)
	wasi_snapshot_preview1.MustInstantiate(ctx, r)
	if compiled.code, err = r.CompileModule(ctx, text); err != nil {
		t.Fatal(err)
	}
	compiled.runtime = r
}

// open starts the module as a host does. Each test gets an instance of its own.
func open(t testing.TB) *module {
	t.Helper()
	compiled.once.Do(func() { compile(t) })
	if compiled.runtime == nil {
		t.Fatal("the module was not built")
	}
	ctx, config := t.Context(), wazero.NewModuleConfig().WithName("").WithStartFunctions("_initialize")
	m, err := compiled.runtime.InstantiateModule(ctx, compiled.code, config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = m.Close(context.WithoutCancel(ctx)) })

	return &module{t: t, ctx: ctx, Module: m}
}

// call calls an export, and returns what it returns; 0 for nothing.
func (m *module) call(name string, args ...uint64) uint32 {
	m.t.Helper()
	out, err := m.ExportedFunction(name).Call(m.ctx, args...)
	if err != nil {
		m.t.Fatalf("%s: %v", name, err)
	}
	if len(out) == 0 {
		return 0
	}

	return api.DecodeU32(out[0])
}

// ask gives an export an input and returns its answer.
func (m *module) ask(name, in string, args ...uint64) string {
	m.t.Helper()
	at := m.call("assent_input", uint64(len(in)))
	if !m.Memory().WriteString(at, in) {
		m.t.Fatalf("no room for %d bytes at %d", len(in), at)
	}
	size := m.call(name, args...)
	out, ok := m.Memory().Read(m.call("assent_output"), size)
	if !ok {
		m.t.Fatalf("no answer of %d bytes", size)
	}

	return string(out)
}

// decider opens a decider, or returns 0 with what was said.
func (m *module) decider(request string) (number uint32, said string) {
	m.t.Helper()
	said = m.ask("assent_open", request)
	var got struct{ Decider uint32 }
	if err := json.Unmarshal([]byte(said), &got); err != nil {
		m.t.Fatalf("%s: %v", said, err)
	}

	return got.Decider, said
}

// TestModuleAnswersAsTheEngine, byte for byte: requests as a whole, and
// calls one by one.
func TestModuleAnswersAsTheEngine(t *testing.T) {
	m := open(t)
	for _, r := range all(t) {
		if !testtier.Row(string(r.Request)) {
			continue
		}
		if got := m.ask("assent_run", string(r.Request)); got != string(r.Answer) {
			t.Errorf("%.200s\n%s\nexpected\n%s", r.Request, got, r.Answer)
		}
	}

	for request, call := range single(t) {
		d, said := m.decider(request)
		if d == 0 {
			t.Fatalf("%.200s\n%s", request, said)
		}
		if got := m.ask("assent_decide", call[0], uint64(d)); got != call[1] {
			t.Errorf("%s\n%s\nexpected\n%s", call[0], got, call[1])
		}
		m.call("assent_close", uint64(d))
		if got := m.ask("assent_decide", call[0], uint64(d)); got != "" {
			t.Errorf("a closed decider answered %s", got)
		}
	}
}

// TestModuleRefusesWhatItCantUse, and answers the next call.
func TestModuleRefusesWhatItCantUse(t *testing.T) {
	m := open(t)
	for in, want := range map[string]string{
		"":                           `{"exit":2,"error":"the request can't be used`,
		"{":                          `{"exit":2,"error":"the request can't be used`,
		`{"kind":"lint"}`:            "kind: expected decide",
		`{"kind":"decide"}`:          "none of the files",
		`{"kind":"ask","query":{}}`:  "kind: expected decide",
		strings.Repeat("[", 200_000): "the request can't be used",
	} {
		if d, said := m.decider(in); d != 0 || !strings.Contains(said, want) {
			t.Errorf("%.40q: decider %d, %s", in, d, said)
		}
	}

	if got := m.ask("assent_decide", "{}", 7); got != "" {
		t.Errorf("a decider that isn't there answered %s", got)
	}
	if at := m.call("assent_input", 1<<31); at != 0 {
		t.Errorf("2 GiB are to be written at %d", at)
	}
	if got := m.ask("assent_run", `{"kind":"diff","files":{},"new":{}}`); !strings.Contains(got, "not answered here") {
		t.Errorf("a comparison is answered %s", got)
	}
}

// BenchmarkDecide measures a call of an example in the module.
func BenchmarkDecide(b *testing.B) {
	m := open(b)
	for request, call := range single(b) {
		d, _ := m.decider(request)
		for b.Loop() {
			m.ask("assent_decide", call[0], uint64(d))
		}
		return
	}
}
