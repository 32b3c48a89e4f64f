package slack

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/slack-go/slack"

	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/internal/safetext"
)

// step is the action that an interaction requests.
type step string

const (
	stepNone    step = ""        // not one of our elements, or a click on the link
	stepApprove step = "approve" // the button, confirmed
	stepAsk     step = "ask"     // the deny button: ask for the reason
	stepDeny    step = "deny"    // the form with the reason
	stepChoose  step = "choose"  // a choice of a question, confirmed
	stepDismiss step = "dismiss" // dismissal of a question, confirmed
	stepFill    step = "fill"    // the answer button: open the form
	stepSubmit  step = "submit"  // the form, filled in
)

// interaction is one click or one submitted form.
type interaction struct {
	step       step
	ticket     ticket
	team, user string // of the person who clicked
	trigger    string // allows us to open a form, once, within three seconds
	reason     string
	choice     *int                        // with stepChoose
	inputs     map[string]map[string]input // with stepSubmit: by block and element
	data       []byte                      // the answer in the inputs
	origin     origin
}

// origin is the message whose button was clicked. It is passed through the form.
type origin struct {
	Ticket   string `json:"ticket"`
	Response string `json:"response_url"` // URL for messages to the person
	Channel  string `json:"channel"`
	TS       string `json:"ts"`
}

var errPayload = errors.New("not an interaction")

const (
	callbackDeny   = "assent_deny"
	callbackAnswer = "assent_answer"
	fieldReason    = "reason"
)

// wire is the part of Slack's payloads that we read.
type wire struct {
	Type string `json:"type"`
	User struct {
		ID   string `json:"id"`
		Team string `json:"team_id"`
	} `json:"user"`
	Team struct {
		ID string `json:"id"`
	} `json:"team"`
	Trigger   string `json:"trigger_id"`
	Response  string `json:"response_url"`
	Container struct {
		Channel string `json:"channel_id"`
		TS      string `json:"message_ts"`
	} `json:"container"`
	Actions []struct {
		ID       string `json:"action_id"`
		Value    string `json:"value"`
		Selected *struct {
			Value string `json:"value"`
		} `json:"selected_option"` // of a menu
	} `json:"actions"`
	View struct {
		Callback string `json:"callback_id"`
		Metadata string `json:"private_metadata"`
		State    struct {
			Values map[string]map[string]input `json:"values"`
		} `json:"state"`
	} `json:"view"`
}

// parseInteraction reads a payload. Elements that are not ours are stepNone, which is
// acknowledged and ignored.
func parseInteraction(payload []byte) (interaction, error) {
	var w wire
	if err := json.Unmarshal(payload, &w); err != nil || w.Type == "" {
		return interaction{}, errPayload
	}
	in := interaction{user: w.User.ID, team: w.User.Team, trigger: w.Trigger}
	if in.team == "" {
		in.team = w.Team.ID
	}
	switch w.Type {
	case string(slack.InteractionTypeBlockActions):
		return in, in.clicked(&w)
	case string(slack.InteractionTypeViewSubmission):
		return in, in.submitted(&w)
	}

	return in, nil
}

func (in *interaction) clicked(w *wire) (err error) {
	if len(w.Actions) != 1 {
		return errPayload
	}
	act := w.Actions[0]
	in.origin = origin{
		Ticket:   act.Value,
		Response: w.Response,
		Channel:  w.Container.Channel,
		TS:       w.Container.TS,
	}
	switch {
	case act.ID == actionApprove:
		in.step = stepApprove
	case act.ID == actionDeny:
		in.step = stepAsk
	case act.ID == actionDismiss:
		in.step = stepDismiss
	case act.ID == actionAnswer:
		in.step = stepFill
	case act.ID == actionChoose && act.Selected != nil:
		return in.picked(act.ID, act.Selected.Value)
	case act.ID == actionChoose:
		return errPayload
	case strings.HasPrefix(act.ID, actionChoose):
		return in.picked(act.ID, act.Value)
	default:
		return nil
	}

	return in.identify()
}

// picked reads the choice that an element belongs to.
func (in *interaction) picked(id, value string) error {
	t, err := parseChoice(value)
	if err != nil {
		return err
	}
	if id != actionChoose && id != chooseID(t.Choice) {
		return errPayload
	}
	in.step = stepChoose
	in.choice = &t.Choice
	in.origin.Ticket = t.ticket.String()
	return in.identify()
}

func (in *interaction) submitted(w *wire) error {
	switch w.View.Callback {
	case callbackDeny:
		in.step = stepDeny
		in.reason = strings.TrimSpace(w.View.State.Values[fieldReason][fieldReason].Value)
	case callbackAnswer:
		in.step, in.inputs = stepSubmit, w.View.State.Values
	default:
		return nil
	}

	if err := json.Unmarshal([]byte(w.View.Metadata), &in.origin); err != nil {
		return errPayload
	}
	return in.identify()
}

// identify reads the ticket and checks the format of the names, so that none of them can have a
// different meaning elsewhere.
func (in *interaction) identify() (err error) {
	if !userForm().MatchString(in.user) || !teamForm().MatchString(in.team) {
		return errPayload
	}
	in.ticket, err = parseTicket(in.origin.Ticket)
	return err
}

// name returns the person who clicked, in the form that the directory maps.
func (in *interaction) name() string { return "slack:" + in.team + ":" + in.user }

// person maps the person who clicked. The short name is only used for our own workspace, since
// in another workspace the same id may belong to a different person.
func (a *App) person(ctx context.Context, in *interaction) (approval.Person, bool, error) {
	p, known, err := a.cfg.People.Person(ctx, a.cfg.Tenant, in.name())
	if err != nil || known || in.team != a.cfg.Team {
		return p, known, err
	}
	return a.cfg.People.Person(ctx, a.cfg.Tenant, "slack:"+in.user)
}

// work handles an interaction and sends the result to the person.
func (a *App) work(ctx context.Context, in interaction) {
	if in.step == stepNone {
		return
	}
	answer := a.act(ctx, &in)
	if answer != "" {
		if err := a.tell(ctx, in.origin.Response, answer); err != nil {
			a.cfg.Report(fmt.Errorf("slack: answer %s: %w", in.name(), err))
		}
	}
	if in.step != stepAsk && in.step != stepFill {
		if err := a.refresh(ctx, &in); err != nil {
			a.cfg.Report(fmt.Errorf("slack: rewrite the message of request %s: %w", in.ticket.Request, err))
		}
	}
}

// act handles an interaction and returns the text for the person, if any.
func (a *App) act(ctx context.Context, in *interaction) string {
	person, known, err := a.person(ctx, in)
	switch {
	case err != nil:
		a.cfg.Report(fmt.Errorf("slack: look up %s: %w", in.name(), err))
		return "Nothing was counted: it can't be found out who you are right now. Try again, or use the inbox."
	case !known:
		return a.refuse(ctx, in)
	case in.step == stepAsk:
		return a.ask(ctx, in, person, approval.Deny)
	}

	unseen := a.showsAll(ctx, in)
	if unseen != nil && in.step != stepDeny {
		return explain(unseen)
	}
	if in.step == stepFill {
		return a.ask(ctx, in, person, approval.Submit)
	}
	return a.vote(ctx, in, approval.VoteInput{
		Person: person.ID,
		Reason: in.reason,
		Full:   unseen == nil,
	})
}

// refuse records an attempt of a person who is not mapped. Their vote never counts.
func (a *App) refuse(ctx context.Context, in *interaction) string {
	_ = a.vote(ctx, in, approval.VoteInput{Person: in.name()})
	return "Nothing was counted: your Slack account is not mapped to anybody who may answer. " +
		"An administrator can map " + in.name() + "."
}

// showsAll returns an error unless the message with the button showed the current call
// completely.
func (a *App) showsAll(ctx context.Context, in *interaction) error {
	r, err := a.cfg.Requests.Request(ctx, a.cfg.Tenant, in.ticket.Request)
	switch {
	case err != nil:
		return err
	case in.ticket.Revision != r.Current().Number || in.ticket.Binding != prefix(r.Binding()):
		return approval.ErrBinding
	case in.ticket.Also != len(r.Requester.Also):
		return approval.ErrVersion
	}

	_, private, err := a.placeOf(ctx, r, in.origin.Channel)
	if err == nil && !a.render(r, "", private).full {
		err = approval.ErrNotShown
	}

	return err
}

// vote counts an answer and returns its result in words.
func (a *App) vote(ctx context.Context, in *interaction, v approval.VoteInput) string {
	v.Tenant = a.cfg.Tenant
	v.ID = in.ticket.Request
	v.Binding = in.ticket.Binding
	v.Channel = name
	v.Also = in.ticket.Also
	v.Choice = in.choice
	v.Data = in.data
	v.Verdict = map[step]approval.Verdict{
		stepApprove: approval.Approve,
		stepAsk:     approval.Deny,
		stepDeny:    approval.Deny,
		stepChoose:  approval.Choose,
		stepDismiss: approval.Dismiss,
		stepFill:    approval.Submit,
		stepSubmit:  approval.Submit,
	}[in.step]
	voted, err := a.cfg.Voter.Vote(ctx, v)
	if err != nil {
		return explain(err)
	}
	if voted.Outcome == approval.VoteAnswered {
		return "Your answer: " + strings.Join(answerOf(voted.Request), "")
	}
	if voted.Detail != "" {
		return "Your answer: " + voted.Detail
	}
	return "Your answer: " + string(voted.Outcome)
}

// explain describes why an answer was not counted. Errors that are not ours are not shown in
// Slack.
func explain(err error) string {
	for _, known := range []error{
		approval.ErrVersion,
		approval.ErrBinding,
		approval.ErrNotShown,
		approval.ErrFrozen,
		approval.ErrClosed,
		approval.ErrNotFound,
		approval.ErrUnknownName,
		approval.ErrNotEligible,
		approval.ErrHidden,
	} {
		if errors.Is(err, known) {
			return "Nothing was counted: " + known.Error() + ". Look at the message again, or use the inbox."
		}
	}

	if _, wrong := errors.AsType[*approval.InputError](err); wrong {
		return "Nothing was counted: that is no answer to this request. Look at the message again, or use the inbox."
	}
	return "Nothing was counted: something failed. Try again, or use the inbox."
}

// ask opens the form for the reason of a denial or for the answer to a question, if the person
// may give this answer.
func (a *App) ask(ctx context.Context, in *interaction, person approval.Person, v approval.Verdict) string {
	r, err := a.cfg.Requests.Request(ctx, a.cfg.Tenant, in.ticket.Request)
	if err != nil {
		return explain(err)
	}
	e, err := a.cfg.Voter.Eligible(ctx, r, person.ID)
	if err != nil {
		return explain(err)
	}
	if err := e.May(v); err != nil {
		return "Nothing was counted: " + err.Error() + "."
	}
	if err := a.opensForm(ctx, in, r, v); err != nil {
		a.cfg.Report(classify(fmt.Errorf("slack: open the form: %w", err), err))
		return "Nothing was counted: the form did not open. Press the button again, or use the inbox."
	}

	return ""
}

func (a *App) opensForm(ctx context.Context, in *interaction, r *approval.Request, v approval.Verdict) error {
	metadata, err := json.Marshal(in.origin)
	if err != nil {
		return err
	}
	const most = 3000
	if len(metadata) > most {
		return errors.New("what the form carries is too long")
	}
	view, fits := denyForm(in.ticket, string(metadata)), true
	if v == approval.Submit {
		view, fits = answerForm(r, string(metadata))
	}
	if !fits {
		return errors.New("the question is more than a form holds")
	}
	_, err = a.api.OpenViewContext(ctx, in.trigger, view)

	return err
}

func denyForm(t ticket, metadata string) slack.ModalViewRequest {
	input := slack.NewPlainTextInputBlockElement(plain("What should be different"), fieldReason)
	input.Multiline = true
	input.MinLength = 1
	input.MaxLength = 900
	return slack.ModalViewRequest{
		Type:            slack.VTModal,
		CallbackID:      callbackDeny,
		PrivateMetadata: metadata,
		Title:           plain("Deny this call"),
		Submit:          plain("Deny"),
		Close:           plain("Cancel"),
		Blocks: slack.Blocks{BlockSet: []slack.Block{
			section("Request " + short(t.Request) + ", binding " + short(t.Binding)),
			slack.NewInputBlock(fieldReason, plain("Reason"), plain("The agent is told."), input),
		}},
	}
}

// tell posts to the response URL, so that only the person sees the text.
func (a *App) tell(ctx context.Context, to, text string) error {
	if !a.trusted(to) {
		return errors.New("the response URL is not Slack's")
	}
	line, _ := safetext.CutSlack(text, maxText)
	body, err := json.Marshal(slack.WebhookMessage{
		Text:         "assent answered",
		ResponseType: slack.ResponseTypeEphemeral,
		Blocks:       &slack.Blocks{BlockSet: []slack.Block{section(line)}},
	})
	if err != nil {
		return err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, to, bytes.NewReader(body))
	if err != nil {
		return errors.New("the response URL can't be used")
	}
	r.Header.Set("Content-Type", "application/json")
	answer, err := a.client.Do(r)
	if e, ok := errors.AsType[*url.Error](err); ok {
		return e.Err // the URL is a secret for as long as it works
	}
	if err != nil {
		return err
	}
	_ = answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("the response URL answered %d", answer.StatusCode)
	}
	return nil
}

// trusted reports whether a response URL belongs to one of Slack's hosts or to the configured
// API's host.
func (a *App) trusted(raw string) bool {
	u, err := url.Parse(raw)
	if err != nil || u.User != nil {
		return false
	}
	if u.Scheme == a.base.Scheme && u.Host == a.base.Host {
		return true
	}
	host := "." + strings.ToLower(u.Host)
	return u.Scheme == "https" &&
		(strings.HasSuffix(host, ".slack.com") || strings.HasSuffix(host, ".slack-gov.com"))
}

// refresh rewrites the message that was clicked. This is usually the one whose place is stored.
// After a crash between posting and storing there is a second one, which we only know from its
// clicks.
func (a *App) refresh(ctx context.Context, in *interaction) error {
	r, err := a.cfg.Requests.Request(ctx, a.cfg.Tenant, in.ticket.Request)
	if err != nil || in.origin.TS == "" {
		return err
	}
	place, private, err := a.placeOf(ctx, r, in.origin.Channel)
	if err != nil || place == "" {
		return err
	}
	known, err := a.remembered(ctx, place, r.ID)
	if err != nil {
		return err
	}
	if known != nil && known.TS == in.origin.TS {
		return a.show(ctx, place, r.ID, false)
	}
	_, _, _, err = a.api.UpdateMessageContext(ctx, in.origin.Channel, in.origin.TS, a.options(ctx, r, private)...)
	return err
}
