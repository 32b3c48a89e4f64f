package server

import (
	"encoding/json"
	"fmt"

	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/approval/info"
	"github.com/assent-dev/assent/resolve"
	"github.com/assent-dev/assent/value"
)

func (x requestOps) askQuestion() error {
	agent, err := x.agent()
	if err != nil {
		return err
	}
	key, err := x.idempotencyKey()
	if err != nil {
		return err
	}
	if key == "" {
		return bad("Idempotency-Key", "expected one: a question that is sent again must stay the same question")
	}

	f := object(x.body, "", "call", "principal", "session", "question", "within", "context").must("question")
	in := approval.AskInput{
		Tenant:   x.tenant(),
		Asker:    asker(x.token),
		Agent:    agent,
		Key:      key,
		Call:     f.asking(),
		Question: f.question("question"),
		Context:  f.context("context"),
		Within:   f.duration("within"),
	}
	if f.err != nil {
		return f.err
	}
	if _, err := x.namesPerson(); err != nil { // a person who asks groups can't answer, so it must be theirs
		return err
	}
	opened, err := x.cfg.Service.Ask(x.r.Context(), in)
	if err != nil {
		return err
	}
	return x.opened(opened)
}

func (f *fields) question(name string) approval.Question {
	raw, ok := f.raw[name]
	if !ok || f.err != nil {
		return approval.Question{}
	}
	in := object(
		raw,
		f.prefix+name+".",
		"asker",
		"prompt",
		"choices",
		"default",
		"schema",
		"groups",
	).must("asker", "prompt")
	if !in.has("schema") {
		in.must("choices", "default")
	}
	q := approval.Question{
		Asker:   in.text("asker"),
		Prompt:  in.text("prompt"),
		Choices: in.labels("choices"),
		Default: in.number("default"),
		Schema:  in.json("schema"),
		Groups:  in.texts("groups"),
	}
	f.err = in.err
	return q
}

// asking returns the call during which a question is asked. It returns a call without a
// kind if the agent asks on its own.
func (f *fields) asking() *resolve.Call {
	if !f.has("call") {
		return &resolve.Call{Principal: f.text("principal"), Session: f.text("session")}
	}
	for _, name := range []string{"principal", "session"} {
		if f.has(name) {
			f.refuse(name, "expected it in the call, which is given")
		}
	}
	return f.call("call")
}

// json returns a member unchanged. It may be any JSON value.
func (f *fields) json(name string) json.RawMessage { return f.raw[name] }

// context reads the agent's statements about its call or question.
func (f *fields) context(name string) []info.Item {
	var out []info.Item
	for i, v := range f.value(name, value.Array, "a list of objects with label, and text, link or diff").Items {
		var item info.Item
		known := map[string]*string{
			"label": &item.Label,
			"text":  &item.Text,
			"link":  &item.Link,
			"diff":  &item.Diff,
		}
		place := fmt.Sprintf("%s.%d", name, i)
		if v.Kind != value.Object {
			f.refuse(place, "expected an object with label, and text, link or diff")
		}
		for _, m := range v.Members {
			to, ok := known[m.Key]
			if !ok || m.Value.Kind != value.String {
				f.refuse(place+"."+m.Key, "expected texts: label, and text, link or diff")
				continue
			}
			*to = m.Value.Text
		}

		out = append(out, item)
	}

	return out
}

// labels reads strings, which may be empty.
func (f *fields) labels(name string) []string {
	var out []string
	for _, item := range f.value(name, value.Array, "a list of strings").Items {
		if item.Kind != value.String {
			f.refuse(name, "expected a list of strings")
			return nil
		}
		out = append(out, item.Text)
	}

	return out
}

// choice reads the choice that a person picked. It returns nil if the body has none.
func (f *fields) choice(name string) *int {
	if !f.has(name) {
		return nil
	}
	n := f.number(name)
	return &n
}

// heldBack withholds the answer to a question from the runtime that asked it while the
// agent is frozen, because the kill switch must stop what the runtime would do with the
// answer.
func (x requestOps) heldBack(r *approval.Request) error {
	if r.State != approval.Answered || !r.AskedBy(asker(x.token)) {
		return nil
	}
	if _, err := x.cfg.Service.Answer(x.r.Context(), x.tenant(), r.ID, asker(x.token)); err != nil {
		return problemOf(err).about(r.ID)
	}
	return nil
}
