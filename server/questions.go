package server

import (
	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/value"
)

func (x *exchange) askQuestion() error {
	agent, err := x.agent()
	if err != nil {
		return err
	}
	key, err := x.idempotencyKey()
	if err != nil {
		return err
	}
	if key == "" {
		return bad(
			"Idempotency-Key",
			"expected one: a question that is sent again must stay the same question",
		)
	}

	f := object(x.body, "", "call", "question", "within").must("call", "question")
	in := approval.AskInput{
		Tenant:   x.tenant(),
		Asker:    asker(x.token),
		Agent:    agent,
		Key:      key,
		Call:     f.call("call"),
		Question: f.question("question"),
		Within:   f.duration("within"),
	}
	if f.err != nil {
		return f.err
	}
	if _, err := x.namesPerson(); err != nil { // who asks groups is barred from answering: the right one must be
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
		"groups",
	).must("asker", "prompt", "choices", "default")
	q := approval.Question{
		Asker:   in.text("asker"),
		Prompt:  in.text("prompt"),
		Choices: in.labels("choices"),
		Default: in.number("default"),
		Groups:  in.texts("groups"),
	}
	f.err = in.err
	return q
}

// labels reads strings that may be empty.
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

// choice reads which choice a person picked; nil when the body names none.
func (f *fields) choice(name string) *int {
	if !f.has(name) {
		return nil
	}
	n := f.number(name)
	return &n
}

// heldBack keeps the answer to a question from the runtime that asked
// it while the agent is frozen: the kill switch stops what the runtime
// would have the tool do next.
func (x *exchange) heldBack(r *approval.Request) error {
	if r.State != approval.Answered || !r.AskedBy(asker(x.token)) {
		return nil
	}
	if _, err := x.cfg.Service.Answer(x.r.Context(), x.tenant(), r.ID, asker(x.token)); err != nil {
		return problemOf(err).about(r.ID)
	}
	return nil
}
