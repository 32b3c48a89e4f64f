package serve

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/assent-dev/assent/agent"
	"github.com/assent-dev/assent/agent/a2a"
	"github.com/assent-dev/assent/agent/content"
)

// record is the state of a task in its thread.
type record struct {
	TaskID    string            `json:"task_id"`
	ContextID string            `json:"context_id"`
	State     a2a.State         `json:"state"`
	Message   *a2a.Message      `json:"message,omitempty"` // message of the status
	At        time.Time         `json:"at"`
	Said      int               `json:"said"`             // number of status messages so far
	Result    string            `json:"result,omitempty"` // the agent's text at the end
	Input     *content.Message  `json:"input,omitempty"`  // input of the current run
	Taken     map[string]string `json:"taken"`            // digests of messages by id
	Open      []string          `json:"open,omitempty"`   // ids of the requests that the status is about
}

// recordKey is the key of the thread state that holds the record.
const recordKey = "serve/a2a"

// mostTaken limits the number of messages of one task.
const mostTaken = 256

var errNoTask = &rpcError{a2a.CodeTaskNotFound, "there is no such task"}

func newRecord(id string, m *a2a.Message) *record {
	out := &record{
		TaskID:    id,
		ContextID: m.ContextID,
		Taken:     map[string]string{},
	}
	if out.ContextID == "" {
		out.ContextID = id
	}
	return out
}

// load reads the thread of a task. It returns errNoTask if there is none.
func (h *A2A) load(ctx context.Context, key string) (*agent.Thread, *record, error) {
	t, err := h.cfg.Store.Load(ctx, key)
	if errors.Is(err, agent.ErrNoThread) {
		return nil, nil, errNoTask
	}
	if err != nil {
		return nil, nil, err
	}
	t.Keep(h.cfg.Store)
	rec := &record{}
	ok, err := t.Get(recordKey, rec)
	if err == nil && !ok {
		err = errNoTask
	}
	return t, rec, err
}

func (h *A2A) save(ctx context.Context, t *agent.Thread, rec *record) error {
	if err := t.Put(recordKey, rec); err != nil {
		return err
	}
	t.Keep(h.cfg.Store)
	err := t.Save(ctx)
	if errors.Is(err, agent.ErrConflict) {
		return unsupported("another process works on the task: look at it again")
	}
	return err
}

// isRepeated reports whether a message was accepted before. It returns an error if a different
// message had the same id.
func (rec *record) isRepeated(m *a2a.Message) (bool, error) {
	before, ok := rec.Taken[m.MessageID]
	if !ok {
		return false, nil
	}
	if digest, err := digestOf(m); err != nil || digest != before {
		return false, invalid("message.messageId: another message had this id: expected a new one")
	}
	return true, nil
}

func digestOf(m *a2a.Message) (string, error) {
	text, err := json.Marshal(m)
	return Hash(string(text)), err
}

// input converts a message to the task into a message for the agent's thread.
func (rec *record) input(thread *agent.Thread, m *a2a.Message) (*content.Message, error) {
	switch {
	case rec.State.Ended():
		return nil, unsupported("the task has ended: a message without taskId begins another")
	case m.Role != a2a.RoleUser:
		return nil, invalid("message.role: expected ROLE_USER")
	case len(rec.Taken) >= mostTaken:
		return nil, unsupported(fmt.Sprintf("the task has taken %d messages and takes no more", mostTaken))
	case rec.State == "":
		return texts(m)
	case m.ContextID != "" && m.ContextID != rec.ContextID:
		return nil, invalid("message.contextId: the task is in another context")
	}

	own, _ := openRequests(thread)
	if len(own) == 0 {
		return nil, unsupported("the task waits for people who answer elsewhere: look at it again later")
	}
	answers, err := a2a.Asked{
		TaskID:    rec.TaskID,
		ContextID: rec.ContextID,
		Requests:  own,
	}.Answers(m)
	if err != nil {
		return nil, invalid(err.Error())
	}
	return content.NewMessage(content.User, answers...), nil
}

// texts converts a message that consists of texts. A task can't begin with other parts.
func texts(m *a2a.Message) (*content.Message, error) {
	out := content.NewMessage(content.User)
	for i, p := range m.Parts {
		if p.Text == nil {
			return nil, &rpcError{codeContentType, fmt.Sprintf("message.parts[%d]: expected a text", i)}
		}
		out.Contents = append(out.Contents, &content.Text{Text: *p.Text})
	}

	if len(out.Contents) == 0 {
		return nil, invalid("message.parts: expected a text, found nothing")
	}
	return out, nil
}

// take records a message that is about to be run.
func (rec *record) take(m *a2a.Message, input *content.Message, now time.Time) {
	digest, err := digestOf(m)
	if err != nil {
		digest = "" // can't happen: the message was decoded from JSON
	}
	rec.Taken[m.MessageID] = digest
	input.ID = m.MessageID
	rec.Input = input
	rec.Open = nil
	rec.State = a2a.Working
	rec.Message = nil
	rec.At = now.UTC()
}

// isIn reports whether the thread's history already contains the input. Then the run had ended
// before its process was killed.
func (rec *record) isIn(thread *agent.Thread) bool {
	return slices.ContainsFunc(thread.Messages, func(m *content.Message) bool { return m.ID == rec.Input.ID })
}

// settle stores the result of a run, and reports whether the record has changed.
func (rec *record) settle(thread *agent.Thread, resp *agent.Response, failed error, now time.Time) bool {
	begun := rec.Input != nil
	if failed != nil {
		rec.Input = nil
		rec.say(a2a.Failed, "The agent's run failed. What it had done by then stays done.", now)
		return true
	}

	own, held := openRequests(thread)
	ids := idsOf(own, held)
	if !begun && len(ids) > 0 && slices.Equal(ids, rec.Open) {
		return false
	}
	ended := ""
	if begun && rec.isIn(thread) {
		ended = lastWords(thread)
	}
	rec.Input = nil
	rec.Open = ids
	switch {
	case len(own) > 0:
		rec.ask(own, now)
	case len(held) > 0:
		words := fmt.Sprintf("Waits for %d approval(s) of people who are asked elsewhere.", len(held))
		rec.say(a2a.Working, words, now)
	case waitsForCaller(resp):
		rec.say(
			a2a.Failed,
			"The agent waits for the results of calls that its caller runs, and has none here.",
			now,
		)
	default:
		rec.Result = resp.Text()
		if rec.Result == "" {
			rec.Result = ended
		}
		rec.say(a2a.Completed, "", now)
	}

	return true
}

func idsOf(own []content.InputRequest, held []agent.Pending) []string {
	var out []string
	for _, q := range own {
		out = append(out, q.InputRequestID())
	}
	for _, p := range held {
		out = append(out, p.Request.InputRequestID())
	}
	return out
}

// lastWords returns the agent's last text in a thread.
func lastWords(thread *agent.Thread) string {
	for _, m := range slices.Backward(thread.Messages) {
		if text := m.Text(); m.Role == content.Assistant && text != "" {
			return text
		}
	}
	return ""
}

// waitsForCaller reports whether a response leaves calls to its caller.
func waitsForCaller(resp *agent.Response) bool {
	served := map[string]bool{}
	for r := range content.All[*content.FunctionResult](resp.Messages) {
		served[r.CallID] = true
	}
	for call := range content.All[*content.FunctionCall](resp.Messages) {
		if !call.InformationalOnly && !served[call.CallID] {
			return true
		}
	}

	return false
}

// messageID returns an id for the next status message.
func (rec *record) messageID() string {
	rec.Said++
	return rec.TaskID + "-" + strconv.Itoa(rec.Said)
}

func (rec *record) ask(own []content.InputRequest, now time.Time) {
	status, err := a2a.Asked{
		TaskID:    rec.TaskID,
		ContextID: rec.ContextID,
		Requests:  own,
	}.Status(rec.messageID())
	if err != nil {
		rec.say(a2a.Failed, "What the agent asks can't be told by A2A: "+err.Error(), now)
		return
	}
	rec.State = status.State
	rec.Message = status.Message
	rec.At = now.UTC()
}

// say sets the state with a text.
func (rec *record) say(state a2a.State, text string, now time.Time) {
	rec.State = state
	rec.Message = nil
	rec.At = now.UTC()
	if text != "" {
		rec.Message = &a2a.Message{
			MessageID: rec.messageID(),
			ContextID: rec.ContextID,
			TaskID:    rec.TaskID,
			Role:      a2a.RoleAgent,
			Parts:     []a2a.Part{{Text: &text, MediaType: "text/plain"}},
		}
	}
}

// status returns the task's status for clients.
func (rec *record) status() a2a.Status {
	return a2a.Status{
		State:     rec.State,
		Message:   rec.Message,
		Timestamp: rec.At.Format(time.RFC3339Nano),
	}
}

// task returns the task for clients.
func (rec *record) task() *a2a.Task {
	out := &a2a.Task{ID: rec.TaskID, ContextID: rec.ContextID, Status: rec.status()}
	if rec.Result != "" {
		out.Artifacts = []a2a.Artifact{{
			ArtifactID: rec.TaskID + "-result",
			Name:       "result",
			Parts:      []a2a.Part{{Text: &rec.Result, MediaType: "text/plain"}},
		}}
	}

	return out
}
