package rap_test

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	goruntime "runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/approval/hold"
	"github.com/assent-dev/assent/rap"
	"github.com/assent-dev/assent/rap/gateway"
	"github.com/assent-dev/assent/rap/peer"
	"github.com/assent-dev/assent/rap/runtime"
	"github.com/assent-dev/assent/resolve"
	"github.com/assent-dev/assent/store"
	"github.com/assent-dev/assent/store/sqlite"
)

// loadLife is what a gateway or a runtime under load does until it is
// killed. It stands in the variable below.
type loadLife struct {
	Gateway bool   // or else a runtime
	Dir     string // of its database, and of the file in which runs are counted
	Own     string // where it is reached: it serves on the listener that it inherits, so that its address outlives it
	Other   string // the other side's origin
	Ahead   time.Duration
	People  uint64 // of so many answer at the runtime's desk one each; 0: nobody does
	Sync    bool   // runs are on the disk before they have an effect
}

const loadLifeVariable = "ASSENT_RAP_LOAD_LIFE"

// loadProcess is one side in a process of its own, on real records. It
// ends with its input.
func loadProcess() error {
	var life loadLife
	if err := json.Unmarshal([]byte(os.Getenv(loadLifeVariable)), &life); err != nil {
		return err
	}
	listener, err := net.FileListener(os.NewFile(3, "listener"))
	if err != nil {
		return err
	}
	db, err := sqlite.Open(context.Background(), filepath.Join(life.Dir, "records.db"), sqlite.Options{})
	if err != nil {
		return err
	}
	mux := http.NewServeMux()
	serve := life.runtime
	if life.Gateway {
		serve = life.gateway
	}
	run, err := serve(db, mux)
	if err != nil {
		return err
	}
	mux.HandleFunc("GET /test/cost", func(w http.ResponseWriter, _ *http.Request) {
		_ = json.NewEncoder(w).Encode(loadCostNow())
	})
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(3) // whoever started this is gone
	}()
	failed := make(chan error, 2)
	go func() { failed <- run(context.Background()) }()
	go func() { failed <- http.Serve(listener, mux) }()
	fmt.Println("ready")
	return <-failed
}

func (l *loadLife) common(db store.Records, file string) (rap.Common, error) {
	plan, err := confPlan(file, strings.ReplaceAll(confToolsPolicy, "acme.tools", "acme.none"))
	return rap.Common{
		Records:   db,
		Namespace: "load",
		Key:       bytes.Repeat([]byte{7}, 32),
		Poll:      100 * time.Millisecond,
		Now:       func() time.Time { return time.Now().Add(l.Ahead) },
		Plan:      func(context.Context) (*resolve.Plan, error) { return plan, nil },
	}, err
}

func (l *loadLife) peer() peer.Config {
	return peer.Config{
		URL:      l.Other,
		Attempts: 1000,
		Backoff:  time.Millisecond,
		Timeout:  10 * time.Second,
	}
}

const loadTools = `
schema_version: "1.0.0"
metadata: {id: toolkeeper, name: Toolkeeper, version: "1.0.0", description: Keeps a tool., namespace: acme.load}
interface: {input: {type: object}, output: {type: object}}
action_space:
  local_tools:
    - {alias: write_file, description: Writes a file., approval: true}
execution_policy: {id: agf.react, config: {instructions: Keep., model: any, max_steps: 5}}
`

const longestWait = 10 * time.Hour // of calls and questions: their ends are not what is tested here

func (l *loadLife) gateway(db store.Records, mux *http.ServeMux) (func(context.Context) error, error) {
	common, err := l.common(db, loadTools)
	if err != nil {
		return nil, err
	}
	caller := gateway.Caller{Name: "load", Callbacks: l.peer()}
	caller.Callbacks.URL, caller.Callbacks.Allow = "", []string{l.Other}
	g, err := gateway.New(gateway.Config{
		Common:    common,
		Name:      "toolkeeper",
		PublicURL: l.Own,
		Callers:   []gateway.Caller{caller},
		Within:    longestWait,
		Rate:      1 << 20,
		Operations: []rap.Operation{{
			Name:        "write_file",
			Description: "Writes a file.",
			InputSchema: json.RawMessage(`{"type":"object"}`),
			Run:         l.write,
		}},
	})
	if err != nil {
		return nil, err
	}
	mux.Handle("/", g)
	return g.Run, nil
}

// write leaves a line for each run before it takes its time.
func (l *loadLife) write(ctx context.Context, job rap.Job) (rap.Outcome, error) {
	flags := os.O_WRONLY | os.O_CREATE | os.O_APPEND
	if l.Sync {
		flags |= os.O_SYNC
	}
	f, err := os.OpenFile(filepath.Join(l.Dir, "runs"), flags, 0o600)
	if err != nil {
		return rap.Outcome{}, err
	}
	if _, err := fmt.Fprintln(f, job.ID); err != nil {
		return rap.Outcome{}, err
	}
	if l.Sync {
		select {
		case <-time.After(loadChance(job.ID, 40*time.Millisecond)):
		case <-ctx.Done():
		}
	}

	return rap.Outcome{Text: "done " + job.ID}, f.Close()
}

// loadChance is a time up to a bound that looks like chance, and is the
// same for a name each time.
func loadChance(name string, most time.Duration) time.Duration {
	sum := sha256.Sum256([]byte(name))
	return time.Duration(binary.BigEndian.Uint64(sum[:8]) % uint64(most))
}

func (l *loadLife) runtime(db store.Records, mux *http.ServeMux) (func(context.Context) error, error) {
	common, err := l.common(db, callerFile)
	if err != nil {
		return nil, err
	}
	common.People = &loadDesk{
		people: l.People,
		due:    map[string]time.Time{},
		fresh:  make(chan struct{}, 1),
	}
	r, err := runtime.New(runtime.Config{
		Common:       common,
		CallbackURL:  l.Own + "/callbacks",
		Servers:      []runtime.Server{{Name: "files", Peer: l.peer()}},
		CallWithin:   longestWait,
		ChoiceWithin: longestWait,
		Only:         confAsker(),
	})
	if err != nil {
		return nil, err
	}
	threads, err := r.As(confAsker())
	if err != nil {
		return nil, err
	}
	mux.Handle("/callbacks/", r)
	mux.HandleFunc("POST /test/invoke", func(w http.ResponseWriter, req *http.Request) {
		id := req.FormValue("id")
		if _, err := threads.Invoke(req.Context(), loadInvocation(id)); err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
		}
	})
	mux.HandleFunc("GET /test/call", func(w http.ResponseWriter, req *http.Request) {
		in := loadInvocation(req.FormValue("id"))
		got, err := threads.Call(req.Context(), in.Thread, in.ID)
		if err != nil && !errors.Is(err, runtime.ErrNoCall) {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		_ = json.NewEncoder(w).Encode(got)
	})
	return r.Run, nil
}

// loadInvocation is the call of an id. There are a hundred threads, and
// those who come one after the other are not in the same one.
func loadInvocation(id string) runtime.Invocation {
	thread := "thread " + id[len(id)-2:]
	return runtime.Invocation{
		Thread:    thread,
		ID:        id,
		User:      "ann",
		Operation: "write_file",
		Arguments: json.RawMessage(`{"path":"/etc/motd","text":"` + id + `"}`),
	}
}

// loadDesk is where people answer after a while, each question by its
// key, so that a desk knows in its next life what it knew in this one.
type loadDesk struct {
	hold.Requests // no approvals here
	people        uint64
	mu            sync.Mutex
	due           map[string]time.Time // by ref
	fresh         chan struct{}
}

func (d *loadDesk) As(approval.Asker) hold.Requests { return d }

func (d *loadDesk) Ask(_ context.Context, key string, _ hold.Question) (string, error) {
	return key, nil
}

func (d *loadDesk) Answer(_ context.Context, ref string) (hold.Answer, error) {
	if !loadAnswered(ref, d.people) || !d.ripe(ref) {
		return hold.Answer{State: hold.Pending}, nil
	}
	return hold.Answer{
		State:    hold.Chosen,
		Selected: int(loadChance("choice of "+ref, 2)),
		By:       "ann",
	}, nil
}

// loadAnswered reports whether people answer at all.
func loadAnswered(ref string, people uint64) bool {
	return people > 0 && uint64(loadChance("interest in "+ref, time.Duration(people))) == 0
}

// ripe reports whether people have had their time.
func (d *loadDesk) ripe(ref string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	at, known := d.due[ref]
	if !known {
		at = time.Now().Add(loadChance("time of "+ref, 100*time.Millisecond))
		d.due[ref] = at
		select {
		case d.fresh <- struct{}{}:
		default:
		}
	}

	return !time.Now().Before(at)
}

func (d *loadDesk) Cancel(context.Context, string, string) error { return hold.ErrNoRequest }

// Watch tells of each answer once.
func (d *loadDesk) Watch(ctx context.Context, changed func(string)) error {
	changed("")
	told := map[string]bool{}
	for ctx.Err() == nil {
		next := time.Now().Add(time.Hour)
		for ref, at := range d.all() {
			switch {
			case told[ref]:
			case !time.Now().Before(at):
				told[ref] = true
				changed(ref)
			case at.Before(next):
				next = at
			}
		}

		select {
		case <-ctx.Done():
		case <-d.fresh:
		case <-time.After(time.Until(next)):
		}
	}

	return ctx.Err()
}

func (d *loadDesk) all() map[string]time.Time {
	d.mu.Lock()
	defer d.mu.Unlock()
	out := make(map[string]time.Time, len(d.due))
	for ref, at := range d.due {
		out[ref] = at
	}
	return out
}

// loadCost is what a process holds.
type loadCost struct {
	Memory uint64 // bytes of heap in use and of stacks, after a collection
	// bytes of the process that are in memory, SQLite's page caches and
	// the free heap included; 0 where nobody tells
	Resident   uint64
	Goroutines int
}

func loadCostNow() loadCost {
	goruntime.GC()
	goruntime.GC() // what finalizers let go
	var m goruntime.MemStats
	goruntime.ReadMemStats(&m)
	c := loadCost{Memory: m.HeapAlloc + m.StackInuse, Goroutines: goruntime.NumGoroutine()}
	var size uint64
	if text, err := os.ReadFile("/proc/self/statm"); err == nil {
		_, _ = fmt.Sscan(string(text), &size, &c.Resident)
		c.Resident *= uint64(os.Getpagesize())
	}
	return c
}

// loaded is a side in a process of its own, through all its lives.
type loaded struct {
	t        *testing.T
	life     loadLife
	listener *os.File
	client   *http.Client
	cmd      *exec.Cmd
}

// newLoaded begins the first life. edit says what of it is special.
func newLoaded(t *testing.T, edit func(*loadLife)) *loaded {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	confMust(t, err)
	defer l.Close()
	p := &loaded{
		t:      t,
		client: loadClient(t),
		life:   loadLife{Dir: t.TempDir(), Own: "http://" + l.Addr().String()},
	}
	edit(&p.life)
	p.listener, err = l.(*net.TCPListener).File()
	confMust(t, err)
	t.Cleanup(func() {
		p.kill()
		_ = p.listener.Close()
	})
	return p
}

// loadClient keeps connections for as many as send at once.
func loadClient(t *testing.T) *http.Client {
	transport := &http.Transport{MaxIdleConnsPerHost: loadWorkers}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport, Timeout: 30 * time.Second}
}

func (p *loaded) start() {
	p.t.Helper()
	text, err := json.Marshal(p.life)
	confMust(p.t, err)
	p.cmd = exec.Command(os.Args[0])
	p.cmd.Env = append(os.Environ(), confProcess+"=load", loadLifeVariable+"="+string(text))
	p.cmd.Stderr, p.cmd.ExtraFiles = os.Stderr, []*os.File{p.listener}
	_, err = p.cmd.StdinPipe()
	confMust(p.t, err)
	out, err := p.cmd.StdoutPipe()
	confMust(p.t, err)
	confMust(p.t, p.cmd.Start())
	if line, err := bufio.NewReader(out).ReadString('\n'); line != "ready\n" {
		p.t.Fatalf("the process said %q: %v", line, err)
	}
}

// kill ends the present life with SIGKILL.
func (p *loaded) kill() {
	if p.cmd != nil {
		_ = p.cmd.Process.Kill()
		_ = p.cmd.Wait()
		p.cmd = nil
	}
	p.client.CloseIdleConnections()
}

// reborn ends the present life and begins the next, a while later: what
// a life claims for itself it has to give up in that time.
func (p *loaded) reborn(later time.Duration) {
	p.t.Helper()
	p.kill()
	p.life.Ahead += later
	p.start()
}

// get reads an answer, for as long as that takes.
func (p *loaded) get(path string, into any) {
	p.t.Helper()
	res, err := p.client.Get(p.life.Own + path)
	confMust(p.t, err)
	defer res.Body.Close()
	confMust(p.t, json.NewDecoder(res.Body).Decode(into))
}

func (p *loaded) cost() (c loadCost) {
	p.t.Helper()
	p.get("/test/cost", &c)
	return c
}

// runs counts the runs of each call, by its id.
func (p *loaded) runs() map[string]int {
	p.t.Helper()
	text, err := os.ReadFile(filepath.Join(p.life.Dir, "runs"))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		p.t.Fatal(err)
	}
	out := map[string]int{}
	for id := range strings.Lines(string(text)) {
		out[strings.TrimSuffix(id, "\n")]++
	}
	return out
}
