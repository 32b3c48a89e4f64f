package rap_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/assent-dev/assent/rap"
	"github.com/assent-dev/assent/rap/gateway"
	"github.com/assent-dev/assent/resolve"
	"github.com/assent-dev/assent/store"
	"github.com/assent-dev/assent/store/sqlite"
)

// confLife is what one gateway process does until it is killed. It
// stands in the variable below.
type confLife struct {
	Dir     string // of the database, and of the file in which runs are counted
	Address string
	Origin  string // of the runtime's callbacks
	Token   string // of the runtime
	KillAt  int    // it kills itself at the nth write to its records; 0: never
	Before  bool   // the write, or else after it
	Block   bool   // the operation never ends
	Ahead   time.Duration
}

const confLifeVariable = "ASSENT_RAP_CONFORMANCE_LIFE"

// gatewayProcess is a gateway in a process of its own, which a row may
// kill. It ends with its input.
func gatewayProcess() error {
	var life confLife
	if err := json.Unmarshal([]byte(os.Getenv(confLifeVariable)), &life); err != nil {
		return err
	}
	ctx := context.Background()
	db, err := sqlite.Open(ctx, filepath.Join(life.Dir, "records.db"), sqlite.Options{})
	if err != nil {
		return err
	}
	plan, err := confPlan(confToolsFile, confToolsPolicy)
	if err != nil {
		return err
	}
	caller := confCaller("alpha", life.Origin, life.Token)
	caller.Callbacks.Attempts = 50
	schema := json.RawMessage(`{"type":"object"}`)
	g, err := gateway.New(gateway.Config{
		Common: rap.Common{
			Records:   &confDoomed{Records: db, life: &life},
			Namespace: "harness",
			Key:       bytes.Repeat([]byte{7}, 32),
			Poll:      10 * time.Millisecond,
			Now:       func() time.Time { return time.Now().Add(life.Ahead) },
			Plan:      func(context.Context) (*resolve.Plan, error) { return plan, nil },
		},
		Name:      "toolkeeper",
		PublicURL: "http://" + life.Address,
		Ask:       gateway.AskUser,
		Callers:   []gateway.Caller{caller},
		Operations: []rap.Operation{
			{
				Name:        "write_file",
				Description: "Writes a file.",
				InputSchema: schema,
				Run:         life.run,
			},
			{
				Name:        "read_file",
				Description: "Reads a file.",
				InputSchema: schema,
				Run:         life.run,
			},
		},
	})
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", life.Address)
	if err != nil {
		return err
	}
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(3) // whoever started this is gone
	}()
	failed := make(chan error, 2)
	go func() { failed <- g.Run(ctx) }()
	go func() { failed <- http.Serve(listener, g) }()
	fmt.Println("ready")
	return <-failed
}

// run leaves a line for each run, durably.
func (l *confLife) run(ctx context.Context, job rap.Job) (rap.Outcome, error) {
	f, err := os.OpenFile(filepath.Join(l.Dir, "runs"), os.O_WRONLY|os.O_CREATE|os.O_APPEND|os.O_SYNC, 0o600)
	if err != nil {
		return rap.Outcome{}, err
	}
	if _, err := fmt.Fprintf(f, "%d %s\n", os.Getpid(), job.Arguments); err != nil {
		return rap.Outcome{}, err
	}
	fmt.Println("begun")
	if l.Block {
		<-ctx.Done()
	}
	return rap.Outcome{Text: "done " + string(job.Arguments)}, f.Close()
}

// confDoomed are records of a process that dies at one of its writes.
type confDoomed struct {
	store.Records
	life   *confLife
	mu     sync.Mutex
	writes int
}

func (d *confDoomed) write(do func() error) error {
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

func (d *confDoomed) PutRecord(ctx context.Context, r store.Record) (version int64, err error) {
	err = d.write(func() error {
		version, err = d.Records.PutRecord(ctx, r)
		return err
	})
	return version, err
}

func (d *confDoomed) DeleteRecord(ctx context.Context, room, key string, version int64) error {
	return d.write(func() error { return d.Records.DeleteRecord(ctx, room, key, version) })
}

// confProcesses are the lives of one gateway, one after the other, on
// the same files and at the same address.
type confProcesses struct {
	t    *testing.T
	r    *confRuntime
	life confLife

	mu    sync.Mutex
	cmd   *exec.Cmd
	begun chan struct{} // a token for each run that began
	up    chan struct{} // closed once the present life is ready
	dead  chan struct{} // closed once it is over
	kills int
}

func newConfProcesses(t *testing.T, first confLife) (*confProcesses, *confRuntime) {
	t.Helper()
	r := newConfRuntime(t, "alpha")
	l := confListen(t)
	p := &confProcesses{t: t, r: r, life: first, begun: make(chan struct{}, 100)}
	p.life.Dir = t.TempDir()
	p.life.Address = l.Addr().String()
	p.life.Origin = r.server.URL
	p.life.Token = r.token
	confMust(t, l.Close())
	t.Cleanup(p.end)
	confMust(t, p.start())
	return p, r
}

// start begins a life.
func (p *confProcesses) start() error {
	text, err := json.Marshal(p.life)
	if err != nil {
		return err
	}
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), confProcess+"=gateway", confLifeVariable+"="+string(text))
	cmd.Stderr = os.Stderr
	if _, err := cmd.StdinPipe(); err != nil {
		return err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	up, dead := make(chan struct{}), make(chan struct{})
	p.mu.Lock()
	p.cmd = cmd
	p.up = up
	p.dead = dead
	p.mu.Unlock()
	go func() {
		defer close(dead)
		ready := sync.OnceFunc(func() { close(up) })
		for lines := bufio.NewScanner(out); lines.Scan(); {
			switch lines.Text() {
			case "ready":
				ready()
			case "begun":
				p.begun <- struct{}{}
			}
		}

		_ = cmd.Wait() // it was killed
		ready()
	}()
	<-up
	return nil
}

// kill ends the present life with SIGKILL.
func (p *confProcesses) kill() {
	p.mu.Lock()
	cmd, dead := p.cmd, p.dead
	p.mu.Unlock()
	_ = cmd.Process.Kill()
	<-dead
}

func (p *confProcesses) end() { p.kill() }

// next begins another life, which nothing dooms, once the present one
// is over. It begins a while later: what a life claims for itself it
// has to give up in that time.
func (p *confProcesses) next() {
	p.t.Helper()
	<-p.dead
	p.kills++
	p.life.KillAt = 0
	p.life.Block = false
	p.life.Ahead = p.life.Ahead + time.Minute
	p.r.client.CloseIdleConnections()
	confMust(p.t, p.start())
}

// insist repeats a request of the runtime until some life of the
// gateway answers it.
func (p *confProcesses) insist(request func() int) int {
	p.t.Helper()
	for range 3 {
		if status := request(); status != 0 {
			return status
		}
		p.next()
	}

	p.t.Fatal("nobody answers")
	return 0
}

// await waits for a callback, through the death of the present life.
func (p *confProcesses) await(c *confCall, kind string) *confCallback {
	p.t.Helper()
	late := time.NewTimer(15 * time.Second)
	defer late.Stop()
	for {
		found, arrived := p.r.found(c.of(kind))
		if len(found) > 0 {
			return found[0]
		}
		select {
		case <-arrived:
		case <-p.dead:
			p.next()
		case <-late.C:
			p.t.Fatalf("never got a %s\n%s", kind, p.r.heard())
		}
	}
}

// runs lists the runs that began, each with the process that began it.
func (p *confProcesses) runs() []string {
	p.t.Helper()
	text, err := os.ReadFile(filepath.Join(p.life.Dir, "runs"))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		p.t.Fatal(err)
	}
	return strings.FieldsFunc(string(text), func(r rune) bool { return r == '\n' })
}

// met tells the runtime where the gateway is, without asking a process
// that may not live that long.
func (p *confProcesses) met() {
	p.t.Helper()
	p.insist(func() int {
		status, _ := p.r.send(http.MethodGet, "http://"+p.life.Address+"/.well-known/rap-toolset", nil)
		return status
	})
	p.r.meet("http://" + p.life.Address)
}
