package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/assent-dev/assent/agent/content"
	"github.com/assent-dev/assent/agent/examples/internal/stage"
)

// answerer answers one request.
type answerer func(q *content.ToolApprovalRequest) (yes bool, reason string, err error)

// scripted lets the waiter see the specials, but not the prices.
func scripted(q *content.ToolApprovalRequest) (bool, string, error) {
	if q.Call.ToolName() == "get_specials" {
		return true, "", nil
	}
	return false, "We don't talk about money at the table.", nil
}

var errNobody = errors.New("nobody answered; the calls did not run")

// atTerminal asks the person at the terminal: y or n, followed by an optional reason. It asks
// again after any other input.
func atTerminal(in io.Reader, p page) answerer {
	lines := bufio.NewScanner(in)
	return func(q *content.ToolApprovalRequest) (bool, string, error) {
		for {
			p.Prompt(stage.CallText(q.Call) + "?  y or n, and why: ")
			if !lines.Scan() {
				p.Line("", "")
				return false, "", unanswered(lines.Err())
			}
			word, reason, _ := strings.Cut(strings.TrimSpace(lines.Text()), " ")
			switch strings.ToLower(word) {
			case "y", "yes":
				return true, strings.TrimSpace(reason), nil
			case "n", "no":
				return false, strings.TrimSpace(reason), nil
			}
		}
	}
}

func unanswered(err error) error {
	if err != nil {
		return fmt.Errorf("%w: %w", errNobody, err)
	}
	return errNobody
}
