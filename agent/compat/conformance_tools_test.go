package compat_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/assent-dev/assent/agent"
)

// toolbox makes the tools of a case and counts the runs of each name.
type toolbox struct {
	mu   sync.Mutex
	runs map[string]int
}

func (b *toolbox) ran(name string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.runs == nil {
		b.runs = map[string]int{}
	}
	b.runs[name]++
}

func (b *toolbox) count(name string) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.runs[name]
}

func (b *toolbox) make(t *caseTool) (agent.Tool, error) {
	if t.Kind != "function" && t.Kind != "" && (t.RequiresApproval || t.Decorated) {
		return nil, fmt.Errorf("the tool %q is a %s, which can't be marked or decorated", t.Name, t.Kind)
	}
	switch t.Kind {
	case "", "function":
		return b.function(t)
	case "declaration_only":
		return declared{t.Name}, nil
	case "hosted_mcp_server":
		return &agent.HostedMCP{Name: t.ServerName}, nil
	}

	return nil, fmt.Errorf("the tool %q is of the unknown kind %q", t.Name, t.Kind)
}

// declared is a tool that is only declared.
type declared struct{ name string }

func (d declared) Definition() agent.Definition { return agent.Definition{Name: d.name} }

// decorator wraps a function and doesn't require approval itself.
type decorator struct{ agent.Function }

func (d decorator) Unwrap() agent.Tool { return d.Function }

func (b *toolbox) function(t *caseTool) (agent.Tool, error) {
	var added agent.Tool
	if on := t.OnInvoke; on != nil {
		var err error
		if added, err = b.onInvoke(on); err != nil {
			return nil, err
		}
	}

	run := func(ctx context.Context, arguments json.RawMessage) (any, error) {
		b.ran(t.Name)
		inv := agent.InvocationOf(ctx)
		if t.OnInvoke != nil {
			t.OnInvoke.apply(inv, added)
		}
		inv.Stop = t.Terminates
		if err := t.failure(); err != nil {
			return nil, err
		}
		return t.result(arguments)
	}
	f := agent.NewFunction(t.Name, "", t.schema(), run)
	if t.RequiresApproval {
		f = agent.RequireApproval(f)
	}
	if t.Decorated {
		f = decorator{f}
	}
	return f, nil
}

func (b *toolbox) onInvoke(on *caseOnInvoke) (agent.Tool, error) {
	t := on.AddTool
	if t == nil {
		t = on.ReplaceTool
	}
	if t == nil {
		return nil, nil
	}
	if t.Source == "additional" {
		return nil, fmt.Errorf("the tool %q: a function can only change the tools of the request", t.Name)
	}
	return b.make(t)
}

func (on *caseOnInvoke) apply(inv *agent.Invocation, added agent.Tool) {
	gone := on.RemoveTool
	if on.ReplaceTool != nil {
		gone = on.ReplaceTool.Name
	}
	inv.Options.Tools = slices.DeleteFunc(inv.Options.Tools, func(t agent.Tool) bool {
		return t.Definition().Name == gone
	})
	if added != nil {
		inv.Options.Tools = append(inv.Options.Tools, added)
	}
}

func (t *caseTool) schema() json.RawMessage {
	props := map[string]any{}
	for _, p := range t.Params {
		props[p.Name] = map[string]string{"type": p.Type}
	}
	raw, err := json.Marshal(map[string]any{"type": "object", "properties": props})
	if err != nil {
		panic(err)
	}
	return raw
}

// failure reads throws, which is false, true or an error text.
func (t *caseTool) failure() error {
	var text string
	switch {
	case len(t.Throws) == 0 || string(t.Throws) == "null" || string(t.Throws) == "false":
		return nil
	case json.Unmarshal(t.Throws, &text) == nil:
		return errors.New(text)
	}

	return errors.New("the tool failed")
}

// result fills the template: {i} is replaced with the argument i.
func (t *caseTool) result(arguments json.RawMessage) (any, error) {
	if nullable(t.Returns) == nil {
		return nil, nil
	}
	var text string
	if json.Unmarshal(t.Returns, &text) != nil {
		return t.Returns, nil
	}
	var args map[string]json.RawMessage
	if len(arguments) > 0 {
		if err := json.Unmarshal(arguments, &args); err != nil {
			return nil, err
		}
	}
	for name, raw := range args {
		text = strings.ReplaceAll(text, "{"+name+"}", plainText(raw))
	}
	return text, nil
}

func plainText(raw json.RawMessage) string {
	var s string
	if json.Unmarshal(raw, &s) == nil {
		return s
	}
	return string(raw)
}

var _ agent.Wrapper = decorator{}
