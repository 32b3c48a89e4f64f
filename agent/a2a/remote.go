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

// RemoteConfig are the choices for a remote agent that is used as a
// tool.
type RemoteConfig struct {
	Name        string // of the tool
	Description string
	// Journal keeps which messages are under way, so that a process
	// that comes after one that was killed goes on with the task and
	// does not send the message again. It may be the store of the
	// threads. Nil: only a call that waits survives its process, by
	// what the thread keeps of it.
	Journal agent.ThreadStore
	// Repeats says that the peer takes a repeated message id for the
	// same message, as package agent/serve does. Then a message of
	// which it isn't known whether it arrived is sent again.
	Repeats bool
	Wait    time.Duration // for a task at work in one run; 0 means 30 s
	MaxAge  time.Duration // of a task; 0 means 24 h
	Rounds  int           // of questions and answers in one task; 0 means 16
	Now     func() time.Time
}

// Remote is a remote agent as a tool. What that agent asks suspends the
// call, the answers go to its task, and the call's result is how the
// task ended. While a call is suspended each run looks at the task,
// since it may have gone on by what others did. A task that is at work
// for longer than a run may wait asks the user whether to wait on.
//
// A peer that contradicts itself, asks without end or takes longer than
// MaxAge is refused: its task is canceled as far as it obeys, and the
// call fails.
type Remote struct {
	client *Client
	cfg    RemoteConfig
}

var (
	_ agent.Resumer   = (*Remote)(nil)
	_ agent.Recoverer = (*Remote)(nil)
)

// NewRemote makes a tool of a remote agent.
func NewRemote(client *Client, cfg RemoteConfig) *Remote {
	cfg.Wait = cmp.Or(cfg.Wait, 30*time.Second)
	cfg.MaxAge = cmp.Or(cfg.MaxAge, 24*time.Hour)
	cfg.Rounds = cmp.Or(cfg.Rounds, 16)
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	return &Remote{client: client, cfg: cfg}
}

// Recovers holds with a journal: then a call whose process was killed
// goes on with its task.
func (r *Remote) Recovers() bool { return r.cfg.Journal != nil }

// remoteSchema is that of a tool that takes one text.
const remoteSchema = `{"type":"object",` +
	`"properties":{"input":{"type":"string","description":"What the remote agent shall do."}},` +
	`"required":["input"],"additionalProperties":false}`

// Definition describes a tool that takes one text.
func (r *Remote) Definition() agent.Definition {
	return agent.Definition{
		Name:        r.cfg.Name,
		Description: r.cfg.Description,
		Schema:      json.RawMessage(remoteSchema),
	}
}

// Ending is how a remote task ended, as the model is told. The text is
// the remote agent's.
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
		return err // the journal keeps it, and the same message is sent again
	case err != nil:
		return errors.Join(err, j.drop(ctx))
	}

	if err := j.take(task); err != nil {
		return r.stop(ctx, j, task.ID, err)
	}
	if task.Status.State.Ended() {
		return nil // and drop follows
	}
	return j.keep(context.WithoutCancel(ctx))
}

// What becomes of a message that another process has begun to send.
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

// ended is the result of the call.
func (r *Remote) ended(ctx context.Context, j *journal) (any, error) {
	state := strings.ToLower(strings.TrimPrefix(string(j.task.Status.State), "TASK_STATE_"))
	return &Ending{State: state, Text: j.task.Text()}, j.drop(ctx)
}

// ask suspends the call with what the task asks. The ids are those of
// this question: an answer to an earlier one finds nothing.
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

// askToWait suspends the call with the question whether to wait on.
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

// waitID is the id of the question whether to wait on.
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

// failed keeps a call for the next run when the peer could not be
// reached, and ends it when the peer is to blame.
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

// stop ends a call whose peer is refused, and the task with it as far
// as the peer obeys.
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

// Resume sends the answers, or looks at the task when there are none.
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
		err = r.look(ctx, j) // what was answered is past, or is not asked any more
	case c.Waiting && content.Rejects(answers[0]):
		return r.cancel(ctx, j)
	case c.Waiting:
		err = r.look(ctx, j)
	case j.isAnswered(c.task):
		err = r.look(ctx, j) // by a process that is gone
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

// look reads the task as it is now. An answer of which it isn't known
// whether it arrived goes out once more, under its id, when the task
// still asks what it answers.
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

// answer sends the answers, which belong to what the task asked when
// the user was shown it.
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

// cancel ends the task since the user does not want it. What comes of
// it is what the peer says.
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
