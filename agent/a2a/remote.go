package a2a

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/assent-dev/assent/agent"
	"github.com/assent-dev/assent/agent/content"
	"github.com/assent-dev/assent/agent/internal/reid"
)

// RemoteConfig configures a remote agent that is used as a tool.
type RemoteConfig struct {
	Name        string // name of the tool
	Description string
	// Journal records messages that are being sent, so that after a process was killed the next
	// one continues with the task instead of sending the message again. It may be the store of
	// the threads. Without it only a suspended call survives its process, because the thread
	// keeps its state.
	Journal agent.ThreadStore
	// Repeats must be set only if the peer treats a repeated message id as the same message, as
	// package agent/serve does. Then a message that may not have arrived is sent again.
	Repeats bool
	Wait    time.Duration // for a working task in one run; 30 seconds by default
	MaxAge  time.Duration // of a task; 24 hours by default
	Rounds  int           // of questions and answers in one task; 16 by default
	Now     func() time.Time
}

// Remote is a remote agent as a tool. Questions of that agent suspend the call, the answers are
// sent to its task, and the call's result is the end of the task. While a call is suspended,
// each run checks the task, since it may have progressed. If a task works for longer than Wait,
// the user is asked whether to keep waiting.
//
// If a peer contradicts itself, asks too many questions or takes longer than MaxAge, the task
// is canceled if the peer cooperates, and the call fails.
type Remote struct {
	client *Client
	cfg    RemoteConfig
}

var (
	_ agent.Resumer   = (*Remote)(nil)
	_ agent.Recoverer = (*Remote)(nil)
)

// NewRemote makes a tool from a remote agent.
func NewRemote(client *Client, cfg RemoteConfig) *Remote {
	cfg.Wait = cmp.Or(cfg.Wait, 30*time.Second)
	cfg.MaxAge = cmp.Or(cfg.MaxAge, 24*time.Hour)
	cfg.Rounds = cmp.Or(cfg.Rounds, 16)
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	return &Remote{client: client, cfg: cfg}
}

// Recovers returns true if there is a journal: then the next process continues the task of a
// call whose process was killed.
func (r *Remote) Recovers() bool { return r.cfg.Journal != nil }

// remoteSchema is the schema of the arguments: one text.
const remoteSchema = `{"type":"object",` +
	`"properties":{"input":{"type":"string","description":"What the remote agent shall do."}},` +
	`"required":["input"],"additionalProperties":false}`

// Definition describes a tool with one text argument.
func (r *Remote) Definition() agent.Definition {
	return agent.Definition{
		Name:        r.cfg.Name,
		Description: r.cfg.Description,
		Schema:      json.RawMessage(remoteSchema),
	}
}

// Ending is the result of a remote task for the model. The text comes from the remote agent.
type Ending struct {
	State string `json:"state"` // completed, failed, canceled or rejected
	Text  string `json:"text"`
}

// Invoke sends the message, unless the journal has a task for it.
func (r *Remote) Invoke(ctx context.Context, call *content.FunctionCall) (any, error) {
	if err := content.CheckSchema(json.RawMessage(remoteSchema), call.Arguments); err != nil {
		return nil, err
	}
	var in struct{ Input string }
	if err := json.Unmarshal(call.Arguments, &in); err != nil {
		return nil, err
	}
	j, err := r.open(ctx, in.Input)
	if err != nil {
		return nil, err
	}
	if j.task == nil {
		if err := r.begin(ctx, j, in.Input); err != nil {
			return nil, err
		}
	} else if err := r.look(ctx, j); err != nil {
		return r.failed(ctx, j, err)
	}

	return r.goOn(ctx, j)
}

// begin sends the first message.
func (r *Remote) begin(ctx context.Context, j *journal, input string) error {
	switch {
	case !j.found || r.cfg.Repeats:
	case r.cfg.Now().Sub(j.Begun) < 2*tries*r.client.cfg.Timeout:
		return errSending
	default:
		return errors.Join(errLost, j.drop(ctx))
	}

	task, err := r.client.Send(ctx, &Message{
		MessageID: j.MessageID,
		ContextID: j.ContextID,
		Role:      RoleUser,
		Parts:     []Part{textPart(input)},
	})
	var unsure *UnsureError
	switch {
	case errors.As(err, &unsure) && r.cfg.Repeats:
		return err // the journal keeps it, and the same message will be sent again
	case err != nil:
		return errors.Join(err, j.drop(ctx))
	}

	if err := j.take(task); err != nil {
		return r.stop(ctx, j, task.ID, err)
	}
	if task.Status.State.Ended() {
		return nil // the caller drops the journal
	}
	return j.keep(context.WithoutCancel(ctx))
}

// Errors about a message that another process has begun to send.
var (
	errSending = errors.New("another process may be sending this message to the remote agent: try again later")
	errLost    = errors.New(
		"a process that is gone was sending this message to the remote agent, and whether it arrived is not known: " +
			"it is not sent again",
	)
)

// goOn follows the task, and ends the call or asks the user.
func (r *Remote) goOn(ctx context.Context, j *journal) (any, error) {
	rests, err := r.follow(ctx, j.conversation)
	if err != nil {
		return r.failed(ctx, j, err)
	}
	if age := r.cfg.Now().Sub(j.Begun); !j.task.Status.State.Ended() && age > r.cfg.MaxAge {
		return nil, r.stop(
			ctx,
			j,
			j.task.ID,
			refuse(Endless, "", "the task has not ended within %s", r.cfg.MaxAge),
		)
	}

	state := j.task.Status.State
	switch {
	case rests && state.Ended():
		return r.ended(ctx, j)
	case rests && state == InputRequired:
		return nil, r.ask(ctx, j)
	case !rests && j.isAnswered(j.task):
		err := refuse(Contradiction, "", "the peer still asks what was answered %s ago", r.cfg.Wait)
		return nil, r.stop(ctx, j, j.task.ID, err)
	}

	return nil, r.askToWait(ctx, j)
}

// ended returns the result of the call.
func (r *Remote) ended(ctx context.Context, j *journal) (any, error) {
	state := strings.ToLower(strings.TrimPrefix(string(j.task.Status.State), "TASK_STATE_"))
	return &Ending{State: state, Text: j.task.Text()}, j.drop(ctx)
}

// ask suspends the call with the task's questions. The ids contain a digest of the question, so
// an answer to an earlier question doesn't match.
func (r *Remote) ask(ctx context.Context, j *journal) error {
	if len(j.Answered) >= r.cfg.Rounds {
		return r.stop(ctx, j, j.task.ID, refuse(Endless, "", "the peer asks after %d answers", r.cfg.Rounds))
	}

	questions, err := j.task.Questions()
	if err != nil {
		return r.stop(ctx, j, j.task.ID, err)
	}
	for i, q := range questions {
		questions[i] = reid.Request(q, q.InputRequestID()+"_"+digestOf(j.task))
	}
	j.Waiting = false
	return r.suspend(ctx, j, questions)
}

// askToWait suspends the call with the question whether to keep waiting.
func (r *Remote) askToWait(ctx context.Context, j *journal) error {
	text := fmt.Sprintf(
		"%s is still at work on task %s. Wait on? A no cancels the task.",
		r.cfg.Name,
		j.task.ID,
	)
	if j.task.Status.State == AuthRequired {
		text = fmt.Sprintf(
			"%s waits on task %s until somebody signs in with it. Wait on? A no cancels the task.",
			r.cfg.Name,
			j.task.ID,
		)
	}

	if said := j.task.text(); said != "" {
		text += "\nIt says: " + said
	}
	j.Waiting = true
	return r.suspend(ctx, j, []content.InputRequest{
		&content.TextApprovalRequest{RequestID: waitID, Text: text},
	})
}

// waitID is the id of the question whether to keep waiting.
const waitID = "a2a_wait"

func (r *Remote) suspend(ctx context.Context, j *journal, questions []content.InputRequest) error {
	state, err := j.encode()
	if err != nil {
		return err
	}
	if err := j.keep(context.WithoutCancel(ctx)); err != nil {
		return err
	}
	return &agent.Suspend{State: state, Requests: questions, Poll: true}
}

// failed keeps a call for the next run if the peer could not be reached, and ends it if the
// peer is at fault.
func (r *Remote) failed(ctx context.Context, j *journal, err error) (any, error) {
	var bad *Error
	var refused *PeerError
	if errors.As(err, &bad) || errors.As(err, &refused) && refused.Code != http.StatusTooManyRequests {
		return nil, r.stop(ctx, j, j.task.ID, err)
	}
	state, encodeErr := j.encode()
	if encodeErr != nil {
		return nil, errors.Join(err, encodeErr)
	}
	return nil, &agent.Suspend{State: state, Err: fmt.Errorf("%s: %w", r.cfg.Name, err)}
}

// stop ends a call because of the peer's behavior, and asks the peer to cancel the task.
func (r *Remote) stop(ctx context.Context, j *journal, task string, cause error) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), r.client.cfg.Timeout)
	defer cancel()
	if task != "" {
		if _, err := r.client.Cancel(ctx, task); err != nil {
			cause = errors.Join(cause, fmt.Errorf("cancel the task: %w", err))
		}
	}
	return errors.Join(cause, j.drop(ctx))
}

// Resume sends the answers, or checks the task if there are none.
func (r *Remote) Resume(
	ctx context.Context, _ *content.FunctionCall, state json.RawMessage, answers []content.InputResponse,
) (any, error) {
	c, err := decodeConversation(state)
	if err != nil {
		return nil, err
	}
	if c.task == nil {
		return nil, errLost
	}
	j, err := r.reopen(ctx, c)
	if err != nil {
		return nil, err
	}
	switch {
	case len(answers) == 0 || !c.Waiting && digestOf(c.task) != digestOf(j.task):
		err = r.look(ctx, j) // the question has been answered or is no longer asked
	case c.Waiting && content.Rejects(answers[0]):
		return r.cancel(ctx, j)
	case c.Waiting:
		err = r.look(ctx, j)
	case j.isAnswered(c.task):
		err = r.look(ctx, j) // a previous process has sent the answer
	default:
		err = r.answer(ctx, j, answers)
	}

	var declined *Error
	if errors.As(err, &declined) && declined.Code == Declined {
		return r.cancel(ctx, j)
	}
	if err != nil {
		return r.failed(ctx, j, err)
	}
	return r.goOn(ctx, j)
}

// look reads the current state of the task. If an earlier answer may not have arrived and the
// task still asks its question, look sends the answer again under the same id.
func (r *Remote) look(ctx context.Context, j *journal) error {
	t, err := r.client.Task(ctx, j.task.ID)
	if err != nil {
		return err
	}
	if err := j.take(t); err != nil || j.Sending == nil {
		return err
	}
	return r.send(ctx, j)
}

// answer sends the answers, which belong to the question that the user saw.
func (r *Remote) answer(ctx context.Context, j *journal, answers []content.InputResponse) error {
	asked := digestOf(j.task)
	own := make([]content.InputResponse, len(answers))
	for i, a := range answers {
		own[i] = reid.Response(a, strings.TrimSuffix(a.InputResponseTo(), "_"+asked))
	}
	m, err := j.task.Reply(rand.Text(), own)
	if err != nil {
		return err
	}
	j.Sending, j.Answered = m, append(j.Answered, asked)
	if err := j.keep(ctx); err != nil {
		return err
	}
	return r.send(ctx, j)
}

func (r *Remote) send(ctx context.Context, j *journal) error {
	t, err := r.client.Send(ctx, j.Sending)
	if err != nil {
		return err
	}
	j.Sending = nil
	return j.take(t)
}

// cancel asks the peer to end the task because the user doesn't want it. The result depends on
// the peer's reply.
func (r *Remote) cancel(ctx context.Context, j *journal) (any, error) {
	t, err := r.client.Cancel(ctx, j.task.ID)
	if err == nil {
		err = j.take(t)
	}
	if err != nil {
		return r.failed(ctx, j, err)
	}
	if !t.Status.State.Ended() {
		return nil, r.askToWait(ctx, j)
	}
	return r.ended(ctx, j)
}
