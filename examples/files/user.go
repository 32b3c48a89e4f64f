package main

import (
	"bufio"
	"context"
	"fmt"
	"strconv"

	"github.com/assent-dev/assent/approval/hold"
	"github.com/assent-dev/assent/examples/internal/stage"
)

// What the script picks, as the gateway offers it: the least first, no last.
const (
	once = iota
	session
	deny
)

// user answers what the tool asks: a script, or whoever types.
type user struct {
	page   *stage.Page
	in     *bufio.Scanner // nil: the script
	script []int
}

// ask is a hold.AskFunc.
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

// typed reads an index. Whatever else is typed dismisses, which picks
// the tool's default: no.
func (u *user) typed(q hold.Question) hold.Answer {
	u.page.Prompt("your choice: ")
	u.in.Scan() // nothing more is read as an empty line
	n, err := strconv.Atoi(u.in.Text())
	if err != nil || n < 0 || n >= len(q.Choices) {
		return hold.Answer{State: hold.Dismissed, Selected: q.Default, By: "user"}
	}

	return hold.Answer{State: hold.Chosen, Selected: n, By: "user"}
}
