// Command remote lets a local agent ask a remote agent over A2A. The remote agent needs an
// approval before it acts. Nothing runs between two commands, because the local thread
// remembers the remote task.
//
//	go run ./examples/remote ask "We need a van on Friday."  # ends with a question
//	go run ./examples/remote answer ID yes                   # goes on
//	go run ./examples/remote answer ID no "too dear"
//	go run ./examples/remote look                            # shows the state
//
// The remote agent runs in this process, unless -partner gives the URL of another one. This
// command starts one:
//
//	go run ./examples/remote -listen 127.0.0.1:8090 partner
//
// With -desk, approvals are given in the inbox of an assent server. The server must have
// rental.agf.yaml among its agents. PARTNER_TOKEN is the token between the two agents.
// ASSENT_TOKEN is the partner's token for the server.
package main

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"time"

	"github.com/assent-dev/assent/agent"
	"github.com/assent-dev/assent/agent/content"
	"github.com/assent-dev/assent/agent/examples/internal/stage"
)

func main() {
	err := run(context.Background(), os.Args[1:], os.Stdout, os.Getenv)
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		stage.NewPage(os.Stderr, "", "").Line("remote", err.Error())
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, out io.Writer, env func(string) string) error {
	flags := flag.NewFlagSet("remote", flag.ContinueOnError)
	dir := flags.String("dir", "", "where threads are kept (default: a folder in the user's cache)")
	url := flags.String("partner", "", "URL of the other agent; left out, it is in this process")
	desk := flags.String("desk", "", "URL of an assent server where people approve what the partner does")
	listen := flags.String("listen", "127.0.0.1:8090", "where the command partner listens")
	wait := flags.Duration("wait", 10*time.Second, "how long a command waits for the other agent")
	decisions := stage.Decisions(flags)
	if err := flags.Parse(args); err != nil {
		return err
	}
	owner, err := stage.Owner(*decisions)
	if err != nil {
		return err
	}
	if *decisions != "" && *desk == "" {
		return errors.New("-decisions is about what the partner does with -desk: expected both")
	}
	if *dir == "" {
		cache, err := os.UserCacheDir()
		if err != nil {
			return fmt.Errorf("name a folder with -dir: %w", err)
		}
		*dir = filepath.Join(cache, "assent-remote")
	}

	other := partner{
		dir:   filepath.Join(*dir, "partner"),
		token: cmp.Or(env("PARTNER_TOKEN"), rand.Text()),
		desk:  *desk,
		owner: owner,
		key:   env("ASSENT_TOKEN"),
	}
	at := *listen
	if flags.Arg(0) != "partner" {
		at = "127.0.0.1:0"
	}
	if flags.Arg(0) == "partner" || *url == "" {
		l, err := net.Listen("tcp", at)
		if err != nil {
			return err
		}
		if flags.Arg(0) == "partner" {
			fmt.Fprintf(out, "http://%s/\n", l.Addr())
			return other.serve(l)
		}
		go func() { _ = other.serve(l) }() // it ends with the command
		*url = fmt.Sprintf("http://%s/", l.Addr())
	}

	p, err := newPlanner(*dir, *url, other.token, *wait, stage.NewPage(out, "user", "planner"))
	if err != nil {
		return err
	}
	return errors.Join(p.do(ctx, flags.Args()), p.page.Err)
}

var errUsage = errors.New("expected ask TEXT, look, answer ID yes, answer ID no REASON, or partner")

func (p *planner) do(ctx context.Context, args []string) error {
	switch {
	case len(args) == 2 && args[0] == "ask":
		p.page.Line("user", args[1])
		return p.goOn(ctx, agent.NewThread(threadID), content.UserText(args[1]))
	case len(args) == 1 && args[0] == "look":
		thread, err := p.store.Load(ctx, threadID)
		if err != nil {
			return err
		}
		return p.goOn(ctx, thread)
	case len(args) >= 3 && args[0] == "answer":
		return p.answer(ctx, args[1], args[2] == "yes", append(args[3:], "")[0])
	}

	return errUsage
}
