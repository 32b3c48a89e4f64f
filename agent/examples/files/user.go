package main

import (
	"bufio"
	"context"
	"fmt"
	"strconv"

	"github.com/assent-dev/assent/agent/examples/internal/stage"
	"github.com/assent-dev/assent/approval/hold"
)

// The choices that the script picks, in the order of the gateway: the smallest permission
// first, no last.
const (
	once = iota
	session
	deny
)

// user answers the questions of the tool. It is a script or a person at the terminal.
type user struct {
	page   *stage.Page
	in     *bufio.Scanner // nil for the script
	script []int
}

// ask implements hold.AskFunc.
func (u *user) ask(_ context.Context, q hold.Question) hold.Answer {
	u.page.Line("asks", q.Prompt)
	for i, label := range q.Choices {
		u.page.Line("", fmt.Sprintf("[%d] %s", i, label))
	}
	if u.in != nil {
		return u.typed(q)
	}
	picked := u.script[0]
	u.script = u.script[1:]
	u.page.Line("user", strconv.Itoa(picked))
	return hold.Answer{State: hold.Chosen, Selected: picked, By: "user"}
}

// typed reads an index. Any other input dismisses the question, which selects the tool's
// default: no.
func (u *user) typed(q hold.Question) hold.Answer {
	u.page.Prompt("your choice: ")
	u.in.Scan() // at the end of the input, the line is empty
	n, err := strconv.Atoi(u.in.Text())
	if err != nil || n < 0 || n >= len(q.Choices) {
		return hold.Answer{State: hold.Dismissed, Selected: q.Default, By: "user"}
	}

	return hold.Answer{State: hold.Chosen, Selected: n, By: "user"}
}
