package main

import (
	"context"
	"crypto/rand"
	_ "embed"
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/approval/hold"
	"github.com/assent-dev/assent/rap"
	"github.com/assent-dev/assent/rap/gateway"
	"github.com/assent-dev/assent/rap/peer"
	"github.com/assent-dev/assent/rap/runtime"
	"github.com/assent-dev/assent/resolve"
	"github.com/assent-dev/assent/schema"
	"github.com/assent-dev/assent/store/sqlite"
)

//go:embed writer.agf.yaml
var writerFile []byte

//go:embed files.agf.yaml
var filesFile []byte

// app has the tool server and the runtime that calls it. Each of them has its own address.
type app struct {
	threads *runtime.Threads // the agent's threads
	owner   resolve.Options  // the owner's choices about decisions
	stop    []func()
}

// open starts both sides with one store.
func open(ctx context.Context, dir string, owner resolve.Options, u *user) (*app, error) {
	store, err := sqlite.Open(ctx, filepath.Join(dir, "assent.db"), sqlite.Options{})
	if err != nil {
		return nil, err
	}
	h := &app{owner: owner, stop: []func(){func() { _ = store.Close() }}}
	common := rap.Common{
		Records: store,
		Key:     make([]byte, 32),
		Now:     time.Now,
		Poll:    100 * time.Millisecond,
	}
	_, _ = rand.Read(common.Key) // never fails
	tools, agents, err := listeners()
	if err != nil {
		return h, err
	}
	if err := h.gateway(ctx, common, dir, tools, agents); err != nil {
		return h, err
	}
	return h, h.startRuntime(ctx, common, tools, agents, u)
}

func listeners() (tools, agents net.Listener, err error) {
	tools, err = net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, nil, err
	}
	agents, err = net.Listen("tcp", "127.0.0.1:0")
	return tools, agents, err
}

// gateway starts the tool's side: one operation, and its callers.
func (h *app) gateway(ctx context.Context, common rap.Common, dir string, at, agents net.Listener) (err error) {
	common.Namespace = "files"
	if common.Plan, err = h.planOf("files.agf.yaml", filesFile); err != nil {
		return err
	}
	g, err := gateway.New(gateway.Config{
		Common:      common,
		Name:        "files",
		Description: "Files of one folder.",
		PublicURL:   address(at),
		Ask:         gateway.AskUser,
		Operations:  []rap.Operation{writeFile(dir)},
		Callers:     []gateway.Caller{{Name: "here", Callbacks: peer.Config{Allow: []string{address(agents)}}}},
		Grants:      gateway.SessionGrants{Offer: true, For: time.Hour, Uses: 10},
		Within:      5 * time.Minute,
	})
	if err == nil {
		h.serve(ctx, at, g, g.Run)
	}
	return err
}

// writeFile writes only below one folder. A path that leaves the folder is an error.
func writeFile(dir string) rap.Operation {
	return rap.Operation{
		Name:        "write_file",
		Description: "Writes a text into a file.",
		InputSchema: json.RawMessage(
			`{"type":"object","properties":{"path":{"type":"string"},"text":{"type":"string"}},"required":["path",` +
				`"text"],"additionalProperties":false}`,
		),
		Run: func(_ context.Context, job rap.Job) (rap.Outcome, error) {
			var in struct{ Path, Text string }
			if err := json.Unmarshal(job.Arguments, &in); err != nil {
				return rap.Outcome{}, err
			}
			root, err := os.OpenRoot(dir)
			if err != nil {
				return rap.Outcome{}, err
			}
			err = errors.Join(root.WriteFile(in.Path, []byte(in.Text), 0o600), root.Close())
			return rap.Outcome{Text: "written: " + in.Path}, err
		},
	}
}

// startRuntime starts the agent's side: the tools that it calls, and the user who answers their
// questions.
func (h *app) startRuntime(
	ctx context.Context,
	common rap.Common,
	tools, at net.Listener,
	u *user,
) (err error) {
	common.Namespace, common.People = "writer", hold.NewLocal(u.ask, nil)
	if common.Plan, err = h.planOf("writer.agf.yaml", writerFile); err != nil {
		return err
	}
	runtime, err := runtime.New(runtime.Config{
		Common:      common,
		CallbackURL: address(at),
		Servers:     []runtime.Server{{Name: "files", Peer: peer.Config{URL: address(tools)}}},
	})
	if err != nil {
		return err
	}
	h.serve(ctx, at, runtime, runtime.Run)
	h.threads, err = runtime.As(approval.Asker{Token: "writer"})
	return err
}

func address(l net.Listener) string { return "http://" + l.Addr().String() }

func (h *app) planOf(name string, text []byte) (func(context.Context) (*resolve.Plan, error), error) {
	agent, findings := schema.Parse(name, text)
	if agent == nil {
		return nil, errors.New(findings[0].Message)
	}
	plan, err := resolve.Compile(agent, nil, h.owner)
	return func(context.Context) (*resolve.Plan, error) { return plan, nil }, err
}

// serve handles requests and does background work until close.
func (h *app) serve(
	ctx context.Context,
	at net.Listener,
	handler http.Handler,
	work func(context.Context) error,
) {
	ctx, cancel := context.WithCancel(ctx)
	s := &http.Server{Handler: handler, ReadHeaderTimeout: 5 * time.Second}
	var all sync.WaitGroup
	all.Go(func() { _ = work(ctx) })   // ends with ctx
	all.Go(func() { _ = s.Serve(at) }) // ends with Close
	h.stop = append(h.stop, func() {
		cancel()
		_ = s.Close()
		all.Wait()
	})
}

// close ends both sides, and then closes the store.
func (h *app) close() error {
	for i := len(h.stop) - 1; i >= 0; i-- {
		h.stop[i]()
	}
	return nil
}
