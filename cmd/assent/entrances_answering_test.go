package main

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/internal/must"
	"github.com/assent-dev/assent/internal/testwait"
	"github.com/assent-dev/assent/mcp"
	"github.com/assent-dev/assent/server/openapi"
)

// wayToAnswer is an entrance by which people answer.
type wayToAnswer struct {
	name  string
	sites []string       // where the product says who answers, and what
	ends  approval.State // what an answer makes of a request that takes one; it is a question where that is answered
	text  bool           // it answers a question for a text
	edits bool           // an answer replaces the arguments, so that it voids those before it
	// looks are the pages that a person opens before answering, in order.
	looks []func(t *testing.T, w *entrances, who string, r *approval.Request)
	// answer returns the message that the person gets.
	answer func(t *testing.T, w *entrances, who string, r *approval.Request) string
}

func waysToAnswer() []wayToAnswer {
	type look = func(*testing.T, *entrances, string, *approval.Request)
	const (
		votes   = "server.requestOps.vote"
		edits   = "server.requestOps.edit"
		ballots = "server/inbox.requestPages.ballot"
		clicked = "server/notify/slack.(*App).act"
	)

	return []wayToAnswer{
		{name: "HTTP, a vote", sites: []string{votes}, ends: approval.Approved, answer: votesOverHTTP},
		{name: "HTTP, a choice", sites: []string{votes}, ends: approval.Answered, answer: votesOverHTTP},
		{
			name:   "HTTP, an edit",
			sites:  []string{edits, "approval.(*Service).edit"},
			ends:   approval.Approved,
			edits:  true,
			answer: editsOverHTTP,
		},
		{name: "the command line, a vote", sites: []string{votes}, ends: approval.Approved, answer: onCommandLine},
		{name: "the command line, a choice", sites: []string{votes}, ends: approval.Answered, answer: onCommandLine},
		{
			name:   "the command line, an edit",
			sites:  []string{edits},
			ends:   approval.Approved,
			edits:  true,
			answer: editsOnCommandLine,
		},
		{
			name:   "the inbox, a vote",
			sites:  []string{ballots},
			ends:   approval.Approved,
			looks:  []look{opensPage},
			answer: votesInInbox,
		},
		{
			name:   "the inbox, a choice",
			sites:  []string{ballots},
			ends:   approval.Answered,
			looks:  []look{opensPage},
			answer: votesInInbox,
		},
		{
			name:   "the inbox, an edit",
			sites:  []string{"server/inbox.requestPages.edit"},
			ends:   approval.Approved,
			edits:  true,
			looks:  []look{opensPage, previews},
			answer: editsInInbox,
		},
		{
			name:   "the inbox, a batch",
			sites:  []string{"server/inbox.queuePages.batchVote"},
			ends:   approval.Approved,
			looks:  []look{opensBatch},
			answer: votesOnBatch,
		},
		{
			name:   "Slack, an approval",
			sites:  []string{clicked, "server/notify/slack.(*App).refuse"},
			ends:   approval.Approved,
			answer: clicksApprove,
		},
		{
			name:   "Slack, a choice",
			sites:  []string{clicked, "server/notify/slack.(*App).refuse"},
			ends:   approval.Answered,
			answer: clicksChoice,
		},
		{name: "HTTP, a text", sites: []string{votes}, ends: approval.Answered, text: true, answer: votesOverHTTP},
		{
			name:   "the command line, a text",
			sites:  []string{votes},
			ends:   approval.Answered,
			text:   true,
			answer: onCommandLine,
		},
		{
			name:   "the inbox, a text",
			sites:  []string{ballots},
			ends:   approval.Answered,
			text:   true,
			looks:  []look{opensPage},
			answer: votesInInbox,
		},
		{
			name:   "Slack, a text",
			sites:  []string{clicked, "server/notify/slack.(*App).refuse"},
			ends:   approval.Answered,
			text:   true,
			answer: submitsText,
		},
		{
			name:   "an MCP client, a form",
			sites:  []string{"mcp.(*serviceUser).Answer"},
			ends:   approval.Answered,
			answer: answersInClient,
		},
		{name: "Slack, a denial", sites: []string{clicked}, ends: approval.Denied, answer: submitsDenial},
	}
}

func votesOverHTTP(t *testing.T, w *entrances, who string, r *approval.Request) string {
	_, told := w.voted(t, who+"-cli", r, nil)

	return told
}

// answersInClient answers as the principal of an MCP client's agent, by the form in that client.
func answersInClient(t *testing.T, w *entrances, who string, r *approval.Request) string {
	by := approval.Asker{Token: "mcp/desk/client", Principal: who}
	if err := mcp.ServiceUser(w.replica.service, r.Tenant).Answer(t.Context(), by, r, 0); err != nil {
		return err.Error()
	}

	return ""
}

// edited returns other arguments for a request. No two edits are the same.
func (w *entrances) edited(r *approval.Request) string {
	return strings.Replace(string(r.Current().Call.Args), "{", fmt.Sprintf(`{"edit":%d,`, w.words.Add(1)), 1)
}

func editsOverHTTP(t *testing.T, w *entrances, who string, r *approval.Request) string {
	body := openapi.EditBody{Arguments: w.edited(r), Binding: r.Binding(), ShownFully: true}
	edited, err := w.client(t, who+"-cli").Edit(t.Context(), r.ID, r.Version, body, false)
	if err != nil {
		return err.Error()
	}

	return edited.Voted.Detail
}

func onCommandLine(t *testing.T, w *entrances, who string, r *approval.Request) string {
	command := []string{"approve", r.ID}
	switch {
	case r.Question == nil:
	case r.Question.Form() != nil:
		command = []string{"answer", r.ID, "--text", "12a"}
	default:
		command = []string{"choose", r.ID, "0"}
	}

	return w.commands(t, who, append(command, "--yes", "--binding", r.Binding())...)
}

func (w *entrances) commands(t *testing.T, who string, args ...string) string {
	t.Helper()
	screen := &terminal{}
	w.run(t, screen, who+"-cli", args...)

	return screen.out.String()
}

func editsOnCommandLine(t *testing.T, w *entrances, who string, r *approval.Request) string {
	file := "edit-" + r.ID + ".json"
	w.writes(t, file, w.edited(r))

	return w.commands(t, who, "edit", r.ID, "--args", filepath.Join(w.dir, file), "--yes", "--binding", r.Binding())
}

// seal returns the seal of the first form of a page, or an empty string if it has none.
func seal(page string) string {
	found := sealPattern.FindStringSubmatch(page)
	if found == nil {
		return ""
	}

	return found[1]
}

// sealsTaken holds the seals of pages, by the person who saw them, the request and its version.
type sealsTaken struct {
	mu sync.Mutex
	of map[string]string
}

func sealOf(who string, r *approval.Request) string {
	return fmt.Sprintf("%s %s %d", who, r.ID, r.Version)
}

// take stores the seal that a page gives a person for answering. If the page has no form for them,
// they try the seal from ben's page.
func (s *sealsTaken) take(who string, r *approval.Request, sealed string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if sealed == "" {
		sealed = s.of[sealOf("ben", r)]
	}
	s.of[sealOf(who, r)] = sealed
}

// taken returns the seal with which a person answers the current version of a request. It is empty
// before they have opened it.
func (s *sealsTaken) taken(who string, r *approval.Request) string {
	s.mu.Lock()
	defer s.mu.Unlock()

	return s.of[sealOf(who, r)]
}

// form returns the form that a person posts about a request, with the seal that they took from a
// page.
func (w *entrances) form(who string, r *approval.Request) url.Values {
	return url.Values{
		"request": {r.ID},
		"version": {strconv.FormatInt(r.Version, 10)},
		"binding": {r.Binding()},
		"seen":    {w.seals.taken(who, r)},
		"verdict": {"approve"},
	}
}

// submits posts a form once its page may be answered, and returns the next page.
func (v *visitor) submits(path string, form url.Values) string {
	v.t.Helper()
	var told string
	testwait.Until(v.t, "the form may be posted", func() bool {
		told = v.post(path, form)
		return !strings.Contains(told, "came right after")
	})

	return told
}

func opensPage(t *testing.T, w *entrances, who string, r *approval.Request) {
	w.seals.take(who, r, seal(w.visitor(t, who).get("/requests/"+r.ID)))
}

func votesInInbox(t *testing.T, w *entrances, who string, r *approval.Request) string {
	v, form := w.visitor(t, who), w.form(who, r)
	switch {
	case r.Question == nil:
	case r.Question.Form() != nil:
		form.Set("verdict", "submit")
		form.Set("field.0", "12a")
	default:
		form.Set("verdict", "choose")
		form.Set("choice", "0")
	}

	return v.submits("/requests/"+r.ID+"/vote", form) + v.get("/requests/"+r.ID)
}

// sealForEdit returns the seal of the form for editing arguments, which is the last form of the
// page.
func sealForEdit(page string) string {
	if i := strings.LastIndex(page, `id="edit-form"`); i >= 0 {
		return seal(page[i:])
	}

	return ""
}

func previews(t *testing.T, w *entrances, who string, r *approval.Request) {
	v := w.visitor(t, who)
	form := w.form(who, r)
	form.Set("seen", sealForEdit(v.get("/requests/"+r.ID)))
	form.Set("step", "preview")
	form.Set("arguments", w.editOf(r))
	w.seals.take(who, r, seal(v.submits("/requests/"+r.ID+"/edit", form)))
}

// editOf returns the call's arguments with the request's version added, as an approver's edit.
func (w *entrances) editOf(r *approval.Request) string {
	return strings.Replace(string(r.Current().Call.Args), "{", fmt.Sprintf(`{"version":%d,`, r.Version), 1)
}

func editsInInbox(t *testing.T, w *entrances, who string, r *approval.Request) string {
	v, form := w.visitor(t, who), w.form(who, r)
	form.Set("step", "confirm")
	form.Set("arguments", w.editOf(r))

	return v.submits("/requests/"+r.ID+"/edit", form) + v.get("/requests/"+r.ID)
}

func opensBatch(t *testing.T, w *entrances, who string, r *approval.Request) {
	w.seals.take(who, r, seal(w.visitor(t, who).get("/batch?id="+r.ID)))
}

func votesOnBatch(t *testing.T, w *entrances, who string, r *approval.Request) string {
	v := w.visitor(t, who)

	return v.submits("/batch", w.form(who, r)) + v.get("/requests/"+r.ID)
}

// Of the workspace.
const (
	slackTeam    = "T0ACME"
	slackChannel = "C0ALL"
	slackSigning = "secret-of-the-app"
)

// slackPeer is a local implementation of the parts of Slack's API that clicks need. It keeps the
// posted buttons and the messages to people.
type slackPeer struct {
	*httptest.Server
	mu      sync.Mutex
	clicks  int
	buttons map[string]string // values, by action and request
	places  map[string]string // where a button stands, by the same
	told    map[string]string // by the path that was posted to
	posted  []string          // the blocks of messages
	direct  map[string]string // the blocks of the last message to one person, by channel
}

// slackButton is a button, or an option of a menu, in the JSON of a message.
var slackButton = regexp.MustCompile(`"action_id":"([^"]+)","value":"(\w+) ([^"]+)"`)

func newSlackPeer(t *testing.T) *slackPeer {
	t.Helper()
	p := &slackPeer{
		buttons: map[string]string{},
		places:  map[string]string{},
		told:    map[string]string{},
		direct:  map[string]string{},
	}
	p.Server = httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		p.mu.Lock()
		defer p.mu.Unlock()
		if strings.HasPrefix(r.URL.Path, "/response/") {
			text, err := io.ReadAll(r.Body)
			if err != nil {
				t.Error(err)
			}
			p.told[r.URL.Path] = string(text)
			return
		}

		if strings.HasSuffix(r.URL.Path, "/conversations.open") {
			user := r.FormValue("users")
			_, _ = fmt.Fprintf(rw, `{"ok":true,"channel":{"id":%q,"user":%q}}`, messagesOf(user), user)
			return
		}
		channel := r.FormValue("channel")
		if strings.HasPrefix(channel, "D0") {
			p.direct[channel] = r.FormValue("blocks")
		} else {
			p.posted = append(p.posted, r.FormValue("blocks"))
		}
		for _, b := range slackButton.FindAllStringSubmatch(r.FormValue("blocks"), -1) {
			p.buttons[b[1]+" "+b[2]] = b[2] + " " + b[3]
			p.places[b[1]+" "+b[2]] = channel
		}
		_, _ = fmt.Fprintf(rw, `{"ok":true,"channel":%q,"ts":"1.1"}`, channel)
	}))
	t.Cleanup(p.Close)

	return p
}

// messagesOf returns the id of the direct messages with a user.
func messagesOf(user string) string { return "D0" + strings.TrimPrefix(user, "U0") }

// button waits until a message shows a button for a request, and
// returns its value, and the channel of the message.
func (p *slackPeer) button(t *testing.T, action string, r *approval.Request) (value, channel string) {
	t.Helper()
	testwait.Until(t, "the message of "+r.ID, func() bool {
		p.mu.Lock()
		defer p.mu.Unlock()
		value, channel = p.buttons[action+" "+r.ID], p.places[action+" "+r.ID]
		return value != ""
	})

	return value, channel
}

// response returns a new response URL.
func (p *slackPeer) response() (path string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.clicks++

	return "/response/" + strconv.Itoa(p.clicks)
}

// interacts posts a signed interaction of a person in Slack, and waits for the message at the
// response URL.
func (w *entrances) interacts(t *testing.T, who, path string, what map[string]any) (told string) {
	t.Helper()
	what["user"] = map[string]any{"id": "U0" + strings.ToUpper(who), "team_id": slackTeam}
	body := url.Values{"payload": {string(mustJSON(t, what))}}.Encode()
	at := strconv.FormatInt(time.Now().Unix(), 10)
	mac := hmac.New(sha256.New, []byte(slackSigning))
	mac.Write([]byte("v0:" + at + ":" + body))
	to := w.ready.URL + "/slack/default"
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, to, strings.NewReader(body))
	must.Do(t, err)
	req.Header.Set("X-Slack-Request-Timestamp", at)
	req.Header.Set("X-Slack-Signature", "v0="+hex.EncodeToString(mac.Sum(nil)))
	answer, err := ownClient().Do(req)
	must.Do(t, err)
	answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		t.Fatalf("the interaction is answered %d", answer.StatusCode)
	}
	testwait.Until(t, who+" is told what became of it", func() bool {
		w.slack.mu.Lock()
		defer w.slack.mu.Unlock()
		told = w.slack.told[path]
		return told != ""
	})

	return told
}

// clicks presses the button of a message.
func (w *entrances) clicks(t *testing.T, who, action string, r *approval.Request) string {
	path := w.slack.response()
	value, channel := w.slack.button(t, action, r)

	return w.interacts(t, who, path, map[string]any{
		"type":         "block_actions",
		"response_url": w.slack.URL + path,
		"container":    map[string]any{"channel_id": channel, "message_ts": "1.1"},
		"actions":      []any{map[string]any{"type": "button", "action_id": action, "value": value}},
	})
}

func clicksApprove(t *testing.T, w *entrances, who string, r *approval.Request) string {
	return w.clicks(t, who, "assent_approve", r)
}

func clicksChoice(t *testing.T, w *entrances, who string, r *approval.Request) string {
	return w.clicks(t, who, "assent_choose_0", r)
}

// submitsDenial posts the form for the reason, which doesn't open for people who may not answer.
func submitsDenial(t *testing.T, w *entrances, who string, r *approval.Request) string {
	return w.submits(t, who, "assent_deny", r, map[string]any{
		"reason": map[string]any{"reason": map[string]string{"value": "not now"}},
	})
}

// submitsText is like submitsDenial for the form of a question for a text.
func submitsText(t *testing.T, w *entrances, who string, r *approval.Request) string {
	return w.submits(t, who, "assent_answer", r, map[string]any{
		"field_0": map[string]any{"value": map[string]string{"value": "12a"}},
	})
}

// submits posts the form that a button opens. The form and the button have the same name.
func (w *entrances) submits(t *testing.T, who, form string, r *approval.Request, values map[string]any) string {
	path := w.slack.response()
	ticket, channel := w.slack.button(t, form, r)
	origin := map[string]string{
		"ticket":       ticket,
		"response_url": w.slack.URL + path,
		"channel":      channel,
		"ts":           "1.1",
	}

	return w.interacts(t, who, path, map[string]any{
		"type": "view_submission",
		"view": map[string]any{
			"callback_id":      form,
			"private_metadata": string(mustJSON(t, origin)),
			"state":            map[string]any{"values": values},
		},
	})
}
