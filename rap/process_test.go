package rap_test

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	goruntime "runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/approval/hold"
	"github.com/assent-dev/assent/internal/must"
	"github.com/assent-dev/assent/internal/testwait"
	"github.com/assent-dev/assent/rap"
	"github.com/assent-dev/assent/rap/gateway"
	"github.com/assent-dev/assent/rap/internal/raptest"
	"github.com/assent-dev/assent/rap/peer"
	"github.com/assent-dev/assent/rap/runtime"
	"github.com/assent-dev/assent/resolve"
	"github.com/assent-dev/assent/store"
	"github.com/assent-dev/assent/store/sqlite"
)

// life configures a gateway or a runtime that runs in a process of its own until it is killed.
// Both keep their records in a SQLite database.
type life struct {
	Gateway bool          // otherwise a runtime
	Dir     string        // contains the database, and the file in which a gateway records its runs
	Own     string        // the URL at which the process listens
	Other   string        // the origin of the other side
	Token   string        // the other side's bearer token; may be empty
	Ahead   time.Duration // offset of the process's clock

	KillAt int  // the gateway kills itself at this write to its records; 0: never
	Before bool // it does so before that write, otherwise after it
	Block  bool // operations of the gateway never end
	Slow   bool // operations of the gateway take up to 40 ms

	Load   bool   // calls wait for a long time
	People uint64 // under load, one of this many questions of a runtime is answered; 0: none
}

// lifeVariable is the environment variable that contains a life. If it is set, this test binary
// runs that process.
const lifeVariable = "ASSENT_RAP_LIFE"

func TestMain(m *testing.M) {
	text := os.Getenv(lifeVariable)
	if text == "" {
		os.Exit(m.Run())
	}
	var l life
	err := json.Unmarshal([]byte(text), &l)
	if err == nil {
		err = l.run()
	}
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}

// run serves until the process is killed or its parent dies.
func (l *life) run() error {
	listener, err := l.listen()
	if err != nil {
		return err
	}
	mux := http.NewServeMux()
	serve := l.runtime
	if l.Gateway {
		serve = l.gateway
	}
	run, err := serve(mux)
	if err != nil {
		return err
	}
	mux.HandleFunc("GET /test/cost", func(w http.ResponseWriter, _ *http.Request) {
		_ = json.NewEncoder(w).Encode(costNow())
	})
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(3)
	}()
	failed := make(chan error, 2)
	go func() { failed <- run(context.Background()) }()
	go func() { failed <- http.Serve(listener, mux) }()
	fmt.Println("ready")
	return <-failed
}

// listen returns the listener that the process inherited, or opens one. A gateway that may kill
// itself opens its own, because a request to a dead process has to fail instead of waiting in
// an inherited listener for the next process.
func (l *life) listen() (net.Listener, error) {
	if l.Gateway && !l.Load {
		return net.Listen("tcp", strings.TrimPrefix(l.Own, "http://"))
	}
	return net.FileListener(os.NewFile(3, "listener"))
}

func (l *life) database() string { return filepath.Join(l.Dir, "records.db") }

func (l *life) common(records store.Records, room string, plan *resolve.Plan) rap.Common {
	return rap.Common{
		Records:   records,
		Namespace: room,
		Key:       raptest.Key(),
		Poll:      map[bool]time.Duration{true: 100 * time.Millisecond, false: 10 * time.Millisecond}[l.Load],
		Now:       func() time.Time { return time.Now().Add(l.Ahead) },
		Plan:      func(context.Context) (*resolve.Plan, error) { return plan, nil },
	}
}

const longestWait = 10 * time.Hour // for calls and questions under load, which must not expire during the test

func (l *life) gateway(mux *http.ServeMux) (func(context.Context) error, error) {
	db, err := sqlite.Open(context.Background(), l.database(), sqlite.Options{})
	if err != nil {
		return nil, err
	}
	plan, err := confPlan(confToolsFile, confToolsPolicy)
	if err != nil {
		return nil, err
	}
	caller := confCaller("alpha", l.Other, l.Token)
	caller.Callbacks.Attempts = 1000
	cfg := gateway.Config{
		Common:    l.common(&doomedRecords{Records: db, life: l}, "harness", plan),
		Name:      "toolkeeper",
		PublicURL: l.Own,
		Callers:   []gateway.Caller{caller},
		Rate:      1 << 20,
	}
	if l.Load {
		cfg.Within = longestWait
	}
	for _, name := range []string{"write_file", "read_file"} {
		cfg.Operations = append(cfg.Operations, rap.Operation{
			Name: name, Description: "Works.", InputSchema: json.RawMessage(`{"type":"object"}`), Run: l.work,
		})
	}
	g, err := gateway.New(cfg)
	if err != nil {
		return nil, err
	}
	mux.Handle("/", g)
	return g.Run, nil
}

// work runs every operation. It first records the run in a file.
func (l *life) work(ctx context.Context, job rap.Job) (rap.Outcome, error) {
	f, err := os.OpenFile(filepath.Join(l.Dir, "runs"), os.O_WRONLY|os.O_CREATE|os.O_APPEND|os.O_SYNC, 0o600)
	if err != nil {
		return rap.Outcome{}, err
	}
	if _, err := fmt.Fprintln(f, os.Getpid(), job.ID); err != nil {
		return rap.Outcome{}, err
	}
	fmt.Println("begun")
	if l.Block {
		<-ctx.Done()
	}
	if l.Slow {
		select {
		case <-time.After(chance(job.ID, 40*time.Millisecond)):
		case <-ctx.Done():
		}
	}

	return rap.Outcome{Text: "done " + string(job.Arguments)}, f.Close()
}

// chance returns a pseudo-random duration below bound. It depends only on the name.
func chance(name string, bound time.Duration) time.Duration {
	sum := sha256.Sum256([]byte(name))
	return time.Duration(binary.BigEndian.Uint64(sum[:8]) % uint64(bound))
}

// doomedRecords kills the process at one of its writes.
type doomedRecords struct {
	store.Records
	life   *life
	mu     sync.Mutex
	writes int
}

func (d *doomedRecords) write(do func() error) error {
	if d.life.KillAt == 0 {
		return do()
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.writes++
	if d.writes == d.life.KillAt && d.life.Before {
		die()
	}
	err := do()
	if d.writes == d.life.KillAt {
		die()
	}
	return err
}

func die() {
	_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
	select {}
}

func (d *doomedRecords) PutRecord(ctx context.Context, r store.Record) (version int64, err error) {
	err = d.write(func() error {
		version, err = d.Records.PutRecord(ctx, r)
		return err
	})
	return version, err
}

func (d *doomedRecords) DeleteRecord(ctx context.Context, room, key string, version int64) error {
	return d.write(func() error { return d.Records.DeleteRecord(ctx, room, key, version) })
}

// runtime starts a runtime that also executes requests of the test under /test/. Its people
// answer in the inbox of a service on the same database or, under load, automatically.
func (l *life) runtime(mux *http.ServeMux) (func(context.Context) error, error) {
	h, err := openClerk(l.database())
	if err != nil {
		return nil, err
	}
	cfg := runtime.Config{
		Common:      l.common(h.store, raptest.Room, h.plan),
		CallbackURL: l.Own + "/callbacks",
		Servers: []runtime.Server{{
			Name: "files",
			Peer: peer.Config{URL: l.Other, Token: l.Token, Attempts: 5, Backoff: 5 * time.Millisecond},
		}},
	}
	cfg.People, cfg.Log = h.desk(), slog.New(slog.NewTextHandler(os.Stderr, nil))
	if l.Load {
		cfg.People = &loadDesk{people: l.People, ripe: map[string]bool{}}
		cfg.Log = nil
		cfg.Only = raptest.Asker()
		cfg.CallWithin, cfg.ChoiceWithin = longestWait, longestWait
		cfg.Servers[0].Peer.Attempts, cfg.Servers[0].Peer.Backoff = 1000, time.Millisecond
	}
	rt, err := runtime.New(cfg)
	if err != nil {
		return nil, err
	}
	threads, err := rt.As(raptest.Asker())
	if err != nil {
		return nil, err
	}
	mux.Handle("/callbacks/", rt)
	mux.HandleFunc("POST /test/invoke", func(w http.ResponseWriter, r *http.Request) {
		var in runtime.Invocation
		err := json.NewDecoder(r.Body).Decode(&in)
		if err == nil {
			_, err = threads.Invoke(r.Context(), in)
		}
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
		}
	})
	mux.HandleFunc("GET /test/call", func(w http.ResponseWriter, r *http.Request) {
		got, err := threads.Call(r.Context(), r.FormValue("thread"), r.FormValue("id"))
		if err != nil && !errors.Is(err, runtime.ErrNoCall) {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		_ = json.NewEncoder(w).Encode(got)
	})
	return rt.Run, nil
}

// loadDesk is an approval service whose people answer some questions after up to 100 ms. The
// answer depends only on the question's key, so the next process gives the same one.
type loadDesk struct {
	hold.Requests // there are no approvals
	people        uint64

	mu   sync.Mutex
	ripe map[string]bool // by ref; false until the people have had their time
	tell func(ref string)
}

func (d *loadDesk) As(approval.Asker) hold.Requests { return d }

func (d *loadDesk) Ask(_ context.Context, key string, _ hold.Question) (string, error) {
	return key, nil
}

// loadAnswered reports whether people answer a question at all.
func loadAnswered(ref string, people uint64) bool {
	return people > 0 && uint64(chance("interest in "+ref, time.Duration(people))) == 0
}

func (d *loadDesk) Answer(_ context.Context, ref string) (hold.Answer, error) {
	if !loadAnswered(ref, d.people) {
		return hold.Answer{State: hold.Pending}, nil
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	ripe, known := d.ripe[ref]
	if !known {
		d.ripe[ref] = false
		time.AfterFunc(chance("time of "+ref, 100*time.Millisecond), func() {
			d.mu.Lock()
			d.ripe[ref] = true
			tell := d.tell
			d.mu.Unlock()
			if tell != nil { // otherwise Watch reports it
				tell(ref)
			}
		})
	}
	if !ripe {
		return hold.Answer{State: hold.Pending}, nil
	}
	return hold.Answer{State: hold.Chosen, Selected: int(chance("choice of "+ref, 2)), By: "ann"}, nil
}

func (d *loadDesk) Cancel(context.Context, string, string) error { return hold.ErrNoRequest }

func (d *loadDesk) Watch(ctx context.Context, changed func(string)) error {
	d.mu.Lock()
	d.tell = changed
	d.mu.Unlock()
	changed("")
	<-ctx.Done()
	return ctx.Err()
}

// cost is the memory and the goroutines of a process.
type cost struct {
	Memory     uint64 // bytes of heap in use and of stacks, after a collection
	Goroutines int
}

func costNow() cost {
	goruntime.GC()
	goruntime.GC() // collects what finalizers released
	var m goruntime.MemStats
	goruntime.ReadMemStats(&m)
	return cost{Memory: m.HeapAlloc + m.StackInuse, Goroutines: goruntime.NumGoroutine()}
}

// process is a gateway or a runtime in a process of its own, restarted on the same files and at
// the same address after each kill.
type process struct {
	t        *testing.T
	life     life
	listener *os.File
	client   *http.Client
	said     testwait.Buffer // standard error
	cmd      *exec.Cmd
	begun    chan struct{} // receives a value for each run that began
	dead     chan struct{} // closed when the current process has ended
	kills    int           // number of restarts
}

// newProcess prepares a process; start starts it.
func newProcess(t *testing.T, first life) *process {
	t.Helper()
	l := confListen(t)
	defer l.Close()
	transport := &http.Transport{MaxIdleConnsPerHost: loadWorkers}
	p := &process{t: t, life: first, client: &http.Client{Transport: transport}, begun: make(chan struct{}, 100)}
	p.life.Dir, p.life.Own = t.TempDir(), "http://"+l.Addr().String()
	if !p.life.Gateway || p.life.Load {
		p.listener = must.Get(l.(*net.TCPListener).File())(t)
	}
	t.Cleanup(func() {
		p.kill()
		_ = p.listener.Close()
		transport.CloseIdleConnections()
		if strings.Contains(p.said.String(), raptest.Secret) {
			t.Error("a token was written down")
		}
		if t.Failed() {
			t.Log(p.said.String())
		}
	})
	return p
}

// start starts the process, and returns once it serves or has ended.
func (p *process) start() {
	p.t.Helper()
	text := must.Get(json.Marshal(p.life))(p.t)
	p.cmd = exec.Command(os.Args[0])
	p.cmd.Env = append(os.Environ(), lifeVariable+"="+string(text))
	p.cmd.Stderr = &p.said
	if p.listener != nil {
		p.cmd.ExtraFiles = []*os.File{p.listener}
	}
	must.Get(p.cmd.StdinPipe())(p.t)
	out := must.Get(p.cmd.StdoutPipe())(p.t)
	must.Do(p.t, p.cmd.Start())
	up := make(chan struct{})
	dead := make(chan struct{})
	cmd := p.cmd
	p.dead = dead
	go func() {
		defer close(dead)
		ready := sync.OnceFunc(func() { close(up) })
		for lines := bufio.NewScanner(out); lines.Scan(); {
			switch lines.Text() {
			case "ready":
				ready()
			case "begun":
				select {
				case p.begun <- struct{}{}:
				default:
				}
			}
		}

		_ = cmd.Wait() // it was killed
		ready()
	}()
	<-up
}

// kill kills the process with SIGKILL.
func (p *process) kill() {
	if p.cmd != nil {
		_ = p.cmd.Process.Kill()
		<-p.dead
	}
	p.client.CloseIdleConnections()
}

// next starts another process after the current one has ended, without KillAt and Block. Its
// clock may be ahead, so that leases of the previous process have expired.
func (p *process) next(later time.Duration) {
	p.t.Helper()
	<-p.dead
	p.client.CloseIdleConnections()
	p.kills++
	p.life.KillAt, p.life.Block = 0, false
	p.life.Ahead += later
	p.start()
}

// reborn kills the process and starts the next one.
func (p *process) reborn(later time.Duration) {
	p.t.Helper()
	p.kill()
	p.next(later)
}

func (p *process) get(path string, into any) {
	p.t.Helper()
	res := must.Get(p.client.Get(p.life.Own + path))(p.t)
	defer res.Body.Close()
	must.Do(p.t, json.NewDecoder(res.Body).Decode(into))
}

func (p *process) cost() (c cost) {
	p.t.Helper()
	p.get("/test/cost", &c)
	return c
}

// post sends a document and returns status and body. The status is 0 if the process was killed
// meanwhile.
func (p *process) post(path string, body []byte) (int, string) {
	res, err := p.client.Post(p.life.Own+path, "application/json", strings.NewReader(string(body)))
	if err != nil {
		return 0, err.Error()
	}
	defer res.Body.Close()
	text, _ := io.ReadAll(res.Body)
	return res.StatusCode, string(text)
}

// invoke makes a call through a runtime.
func (p *process) invoke(in runtime.Invocation) (int, string) {
	return p.post("/test/invoke", confJSON(p.t, in))
}

// call reads a call of a runtime. It returns the zero call if there is none.
func (p *process) call(thread, id string) (c runtime.Call) {
	p.t.Helper()
	p.get("/test/call?"+url.Values{"thread": {thread}, "id": {id}}.Encode(), &c)
	return c
}

// runs lists the recorded runs of a gateway: the process and the id of the call.
func (p *process) runs() (all [][2]string) {
	p.t.Helper()
	text, err := os.ReadFile(filepath.Join(p.life.Dir, "runs"))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		p.t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		pid, id, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		all = append(all, [2]string{pid, id})
	}
	return all
}
