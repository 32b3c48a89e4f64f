// Command files protects a tool that writes files with approvals, and calls the tool as an
// agent would. Both sides of RAP's user choice run in one process and use real HTTP.
//
//	go run ./examples/files        # a script plays the user
//	go run ./examples/files -ask   # you are the user
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/assent-dev/assent/agent/examples/internal/stage"
	"github.com/assent-dev/assent/rap/runtime"
)

func main() {
	err := run(context.Background(), os.Args[1:], os.Stdin, os.Stdout)
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		stage.NewPage(os.Stderr, "", "").Line("files", err.Error())
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, in io.Reader, out io.Writer) (err error) {
	flags := flag.NewFlagSet("files", flag.ContinueOnError)
	ask := flags.Bool("ask", false, "you answer what the tool asks")
	decisions := stage.Decisions(flags)
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() > 0 {
		return fmt.Errorf("%q: expected flags only", flags.Arg(0))
	}
	owner, err := stage.Owner(*decisions)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "assent-files-*")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	page := stage.NewPage(out, "user", "agent")
	u := &user{page: page, script: []int{session, once, deny}}
	if *ask {
		u.in = bufio.NewScanner(in)
	}
	h, err := open(ctx, dir, owner, u)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, h.close()) }()
	return errors.Join(h.play(ctx, page, dir), page.Err)
}

// play makes four calls in two threads.
func (h *app) play(ctx context.Context, page *stage.Page, dir string) error {
	for _, c := range []struct{ thread, id, path, text string }{
		{"monday", "call_1", "notes.txt", "bread, milk"},
		{"monday", "call_2", "notes.txt", "bread, milk, eggs"},
		{"tuesday", "call_1", "plans.txt", "paint the door"},
		{"tuesday", "call_2", "secrets.txt", "the key is under the mat"},
	} {
		if c.id == "call_1" {
			page.Title("%s", c.thread)
		}
		page.Line("agent", fmt.Sprintf("write_file %s: %s", c.path, c.text))
		args, err := json.Marshal(map[string]string{"path": c.path, "text": c.text})
		if err != nil {
			return err
		}
		in := runtime.Invocation{
			Thread:    c.thread,
			ID:        c.id,
			User:      "user",
			Operation: "write_file",
			Arguments: args,
		}
		if _, err := h.threads.Invoke(ctx, in); err != nil {
			return err
		}
		end, err := h.threads.Wait(ctx, c.thread, c.id)
		if err != nil {
			return err
		}
		page.Line("result", end.Outcome.Text)
	}

	page.Title("the folder")
	files, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, f := range files {
		if filepath.Ext(f.Name()) != ".txt" {
			continue
		}
		text, err := os.ReadFile(filepath.Join(dir, f.Name()))
		if err != nil {
			return err
		}
		page.Line(f.Name(), string(text))
	}

	return nil
}
