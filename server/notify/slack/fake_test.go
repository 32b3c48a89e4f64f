package slack_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
)

const botToken = "xoxb-1-secret"

// fakeSlack is a local Slack API. It rejects the same requests as the real one.
type fakeSlack struct {
	*httptest.Server
	t        testing.TB
	mu       sync.Mutex
	messages []*posted
	views    []json.RawMessage
	triggers map[string]trigger
	answers  []string // messages posted to response URLs
	uses     map[string]int
	fail     map[string][]failure // results of the next calls, by method
	hook     func(method string)  // runs before a call is answered
	busy     sync.WaitGroup       // calls in progress
	opens    map[string]any       // response of conversations.open; if nil, the direct messages with the requested user
}

type failure struct {
	status int
	after  string
	code   string
}

// posted is a message in its current state.
type posted struct {
	channel, ts, thread, text string
	blocks                    []block
	broadcast                 bool
	edits                     int
	deleted                   bool
}

func newFakeSlack(t testing.TB) *fakeSlack {
	f := &fakeSlack{
		t:        t,
		triggers: map[string]trigger{},
		uses:     map[string]int{},
		fail:     map[string][]failure{},
	}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /api/chat.postMessage", f.form(f.post))
	mux.HandleFunc("POST /api/chat.update", f.form(f.update))
	mux.HandleFunc("POST /api/views.open", f.method(f.open))
	mux.HandleFunc("POST /api/conversations.open", f.form(f.converse))
	mux.HandleFunc("POST /response/{id}", f.respond)
	f.Server = httptest.NewTLSServer(mux)
	t.Cleanup(f.Close)
	return f
}

// method wraps one method with the common parts: planned failures, and the JSON of the
// response.
func (f *fakeSlack) method(h func(*http.Request) (map[string]any, string)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		f.busy.Add(1)
		defer f.busy.Done()
		name := strings.TrimPrefix(r.URL.Path, "/api/")
		f.mu.Lock()
		hook := f.hook
		var next failure
		if list := f.fail[name]; len(list) > 0 {
			next, f.fail[name] = list[0], list[1:]
		}
		f.mu.Unlock()
		if hook != nil {
			_ = r.ParseForm() // while the caller is connected; the result is checked below
			hook(name)
		}
		if next.status != 0 {
			w.Header().Set("Location", "/elsewhere")
			if next.after != "" {
				w.Header().Set("Retry-After", next.after)
			}
			w.WriteHeader(next.status)
			return
		}

		out, code := map[string]any{}, next.code
		if code == "" {
			f.mu.Lock()
			out, code = h(r)
			f.mu.Unlock()
		}
		if code != "" {
			out = map[string]any{"ok": false, "error": code}
		} else {
			out["ok"] = true
		}
		w.Header().Set("Content-Type", "application/json; charset=utf-8")
		_ = json.NewEncoder(w).Encode(out)
	}
}

func (f *fakeSlack) form(h func(url.Values) (map[string]any, string)) http.HandlerFunc {
	return f.method(func(r *http.Request) (map[string]any, string) {
		if r.Header.Get("Content-Type") != "application/x-www-form-urlencoded" {
			return nil, "invalid_form_data"
		}
		if err := r.ParseForm(); err != nil {
			return nil, "invalid_form_data"
		}
		token, bearer := r.PostForm.Get("token"), strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
		switch {
		case token == "" && bearer == "":
			return nil, "not_authed"
		case token != botToken && bearer != botToken:
			return nil, "invalid_auth"
		}

		return h(r.PostForm)
	})
}

func (f *fakeSlack) content(v url.Values) ([]block, string) {
	switch {
	case v.Get("text") == "":
		return nil, "no_text"
	case strings.Contains(v.Get("text"), "<"):
		return nil, "the text would be read as markup"
	}

	blocks, err := readBlocks([]byte(v.Get("blocks")), 50)
	if err != nil {
		f.t.Errorf("blocks: %v\n%s", err, v.Get("blocks"))
		return nil, "invalid_blocks"
	}
	return blocks, ""
}

func (f *fakeSlack) post(v url.Values) (map[string]any, string) {
	if !strings.HasPrefix(v.Get("channel"), "C0") && !strings.HasPrefix(v.Get("channel"), "D0") {
		return nil, "channel_not_found"
	}
	blocks, code := f.content(v)
	if code != "" {
		return nil, code
	}
	if v.Get("unfurl_links") != "false" || v.Get("unfurl_media") != "false" {
		f.t.Error("links could unfurl")
	}
	p := &posted{
		channel:   v.Get("channel"),
		ts:        fmt.Sprintf("1700000000.%06d", len(f.messages)+1),
		thread:    v.Get("thread_ts"),
		text:      v.Get("text"),
		blocks:    blocks,
		broadcast: v.Get("reply_broadcast") == "true",
	}
	f.messages = append(f.messages, p)
	return map[string]any{"channel": p.channel, "ts": p.ts}, ""
}

// converse opens the direct messages with one known user.
func (f *fakeSlack) converse(v url.Values) (map[string]any, string) {
	user := v.Get("users")
	switch {
	case !strings.HasPrefix(user, "U0") || strings.Contains(user, ","):
		return nil, "user_not_found"
	case v.Get("return_im") != "true":
		return nil, "whose they are is not asked for"
	case f.opens != nil:
		return f.opens, ""
	}

	return map[string]any{"channel": map[string]any{"id": messagesOf(user), "is_im": true, "user": user}}, ""
}

// messagesOf returns the id of the direct messages with a user.
func messagesOf(user string) string { return "D0" + strings.TrimPrefix(user, "U0") }

func (f *fakeSlack) update(v url.Values) (map[string]any, string) {
	for _, p := range f.messages {
		if p.channel == v.Get("channel") && p.ts == v.Get("ts") && !p.deleted {
			blocks, code := f.content(v)
			if code != "" {
				return nil, code
			}
			p.text = v.Get("text")
			p.blocks = blocks
			p.edits = p.edits + 1
			return map[string]any{"channel": p.channel, "ts": p.ts, "text": p.text}, ""
		}
	}

	return nil, "message_not_found"
}

// trigger is the state of the id that opens a form. Slack's trigger ids expire after three
// seconds.
type trigger int

const (
	freshTrigger trigger = iota
	expiredTrigger
)

func (f *fakeSlack) open(r *http.Request) (map[string]any, string) {
	var body struct {
		Trigger string          `json:"trigger_id"`
		View    json.RawMessage `json:"view"`
	}
	if r.Header.Get("Authorization") != "Bearer "+botToken {
		return nil, "invalid_auth"
	}
	if !strings.HasPrefix(r.Header.Get("Content-Type"), "application/json") ||
		json.NewDecoder(r.Body).Decode(&body) != nil {
		return nil, "invalid_json"
	}
	state, ok := f.triggers[body.Trigger]
	delete(f.triggers, body.Trigger)
	switch {
	case !ok:
		return nil, "invalid_trigger_id"
	case state == expiredTrigger:
		return nil, "expired_trigger_id"
	}

	if err := checkView(body.View); err != nil {
		f.t.Errorf("view: %v\n%s", err, body.View)
		return nil, "invalid_arguments"
	}
	f.views = append(f.views, body.View)
	return map[string]any{"view": map[string]any{"id": "V1"}}, ""
}

// respond accepts up to five posts to a response URL.
func (f *fakeSlack) respond(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.uses[r.URL.Path]++; f.uses[r.URL.Path] > 5 || r.Header.Get("Content-Type") != "application/json" {
		w.WriteHeader(http.StatusNotFound)
		return
	}
	var answer struct {
		Text    string          `json:"text"`
		Type    string          `json:"response_type"`
		Replace bool            `json:"replace_original"`
		Blocks  json.RawMessage `json:"blocks"`
	}
	if err := json.Unmarshal(body, &answer); err != nil || answer.Type != "ephemeral" || answer.Replace {
		f.t.Errorf("answer: %v %s", err, body)
	}
	blocks, err := readBlocks(answer.Blocks, 50)
	if err != nil {
		f.t.Errorf("answer: %v %s", err, body)
	}
	f.answers = append(f.answers, texts(blocks))
}

// now returns the messages in their current state, without replies in threads.
func (f *fakeSlack) now() []posted {
	f.mu.Lock()
	defer f.mu.Unlock()
	var out []posted
	for _, p := range f.messages {
		if p.thread == "" && !p.deleted {
			out = append(out, *p)
		}
	}
	return out
}

func (f *fakeSlack) replies() []posted {
	f.mu.Lock()
	defer f.mu.Unlock()
	var out []posted
	for _, p := range f.messages {
		if p.thread != "" {
			out = append(out, *p)
		}
	}
	return out
}

func (f *fakeSlack) order(method string, failures ...failure) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.fail[method] = failures
}

// heard returns the messages to people since the last call.
func (f *fakeSlack) heard() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	out := strings.Join(f.answers, "\n")
	f.answers = nil
	return out
}

// block is the part of Block Kit that we use. Other fields are rejected.
type block struct {
	Type     string    `json:"type"`
	BlockID  string    `json:"block_id,omitempty"`
	Text     *textObj  `json:"text,omitempty"`
	Expand   bool      `json:"expand,omitempty"`
	Elements []element `json:"elements,omitempty"`
	Label    *textObj  `json:"label,omitempty"`
	Hint     *textObj  `json:"hint,omitempty"`
	Element  *element  `json:"element,omitempty"`
	Optional bool      `json:"optional,omitempty"`
}

type textObj struct {
	Type  string `json:"type"`
	Text  string `json:"text"`
	Emoji *bool  `json:"emoji"`
}

type element struct {
	Type        string   `json:"type"`
	ActionID    string   `json:"action_id"`
	Text        *textObj `json:"text,omitempty"`
	Value       string   `json:"value,omitempty"`
	URL         string   `json:"url,omitempty"`
	Style       string   `json:"style,omitempty"`
	Confirm     *confirm `json:"confirm,omitempty"`
	Placeholder *textObj `json:"placeholder,omitempty"`
	Multiline   bool     `json:"multiline,omitempty"`
	MinLength   int      `json:"min_length,omitempty"`
	MaxLength   int      `json:"max_length,omitempty"`
	Options     []option `json:"options,omitempty"`

	// fields of inputs
	InitialValue   string   `json:"initial_value,omitempty"`
	InitialDate    string   `json:"initial_date,omitempty"`
	InitialOption  *option  `json:"initial_option,omitempty"`
	InitialOptions []option `json:"initial_options,omitempty"`
	Decimal        *bool    `json:"is_decimal_allowed,omitempty"`
	MinValue       string   `json:"min_value,omitempty"`
	MaxValue       string   `json:"max_value,omitempty"`
	MaxSelected    int      `json:"max_selected_items,omitempty"`
}

type option struct {
	Text  *textObj `json:"text"`
	Value string   `json:"value"`
}

type confirm struct {
	Title   *textObj `json:"title"`
	Text    *textObj `json:"text"`
	Confirm *textObj `json:"confirm"`
	Deny    *textObj `json:"deny"`
}

func strict(raw []byte, into any) error {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.DisallowUnknownFields()
	return d.Decode(into)
}

// readBlocks reads blocks and checks Slack's limits.
func readBlocks(raw []byte, most int) ([]block, error) {
	var blocks []block
	if err := strict(raw, &blocks); err != nil {
		return nil, err
	}
	if len(blocks) == 0 || len(blocks) > most {
		return nil, fmt.Errorf("%d blocks", len(blocks))
	}
	ids, total := map[string]bool{}, 0
	for i, b := range blocks {
		if err := b.check(ids); err != nil {
			return nil, fmt.Errorf("block %d: %w", i, err)
		}
		if b.Text != nil {
			total += len([]rune(b.Text.Text))
		}
	}

	if total > 13_000 {
		return nil, fmt.Errorf("msg_blocks_too_long: %d", total)
	}
	return blocks, nil
}

func (b *block) check(ids map[string]bool) error {
	switch b.Type {
	case "header":
		return b.Text.check(150)
	case "section":
		if !b.Expand {
			return fmt.Errorf("could be folded")
		}
		return b.Text.check(3000)
	case "actions":
		if len(b.Elements) == 0 || len(b.Elements) > 25 {
			return fmt.Errorf("%d elements", len(b.Elements))
		}
		for i := range b.Elements {
			if err := b.Elements[i].button(ids); err != nil {
				return err
			}
		}
		return nil
	case "input":
		if b.Element == nil || b.Element.ActionID == "" || b.BlockID == "" || ids["block "+b.BlockID] {
			return fmt.Errorf("no input, or the same again")
		}
		ids["block "+b.BlockID] = true
		if err := b.Element.input(); err != nil {
			return err
		}
		if b.Hint != nil && b.Hint.check(2000) != nil {
			return fmt.Errorf("hint")
		}
		return b.Label.check(2000)
	}

	return fmt.Errorf("type %q", b.Type)
}

func (t *textObj) check(most int) error {
	switch {
	case t == nil:
		return fmt.Errorf("no text")
	case t.Type != "plain_text" || t.Emoji == nil || *t.Emoji:
		return fmt.Errorf("not plain text without emoji: %q", t.Text)
	case t.Text == "" || len([]rune(t.Text)) > most:
		return fmt.Errorf("%d characters, at most %d", len([]rune(t.Text)), most)
	}

	return nil
}

func (e *element) button(ids map[string]bool) error {
	switch {
	case e.Type == "static_select":
		if err := e.menu(); err != nil {
			return err
		}
	case e.Type != "button":
		return fmt.Errorf("element %q", e.Type)
	}

	switch {
	case e.ActionID == "" || len(e.ActionID) > 255 || ids[e.ActionID]:
		return fmt.Errorf("action_id %q", e.ActionID)
	case len(e.Value) > 2000 || len(e.URL) > 3000 || e.Style != "" && e.Style != "primary" && e.Style != "danger":
		return fmt.Errorf("button %q", e.ActionID)
	}

	ids[e.ActionID] = true
	if c := e.Confirm; c != nil {
		for most, t := range map[int]*textObj{100: c.Title, 300: c.Text, 30: c.Confirm, 29: c.Deny} {
			if err := t.check(most); err != nil {
				return fmt.Errorf("confirm: %w", err)
			}
		}
	}

	if e.Type == "static_select" {
		return e.Placeholder.check(150)
	}
	return e.Text.check(75)
}

// input checks a control of a modal against Slack's limits.
func (e *element) input() error {
	most := map[string]int{"radio_buttons": 10, "checkboxes": 10, "static_select": 100, "multi_static_select": 100}
	switch e.Type {
	case "plain_text_input":
		if e.MinLength > 3000 || e.MaxLength > 3000 || e.MinLength > e.MaxLength ||
			len([]rune(e.InitialValue)) > e.MaxLength {
			return fmt.Errorf("lengths %d to %d of %q", e.MinLength, e.MaxLength, e.InitialValue)
		}
	case "email_text_input", "url_text_input", "datepicker":
	case "number_input":
		if e.Decimal == nil {
			return fmt.Errorf("is_decimal_allowed is required")
		}
	default:
		if most[e.Type] == 0 || len(e.Options) == 0 || len(e.Options) > most[e.Type] {
			return fmt.Errorf("%q with %d options", e.Type, len(e.Options))
		}
	}

	all := append(append([]option{}, e.Options...), e.InitialOptions...)
	if e.InitialOption != nil {
		all = append(all, *e.InitialOption)
	}
	for _, o := range all {
		if err := o.Text.check(75); err != nil || o.Value == "" || len(o.Value) > 75 {
			return fmt.Errorf("option %q: %w", o.Value, err)
		}
	}

	return nil
}

func (e *element) menu() error {
	if len(e.Options) == 0 || len(e.Options) > 100 || e.Text != nil || e.Value != "" || e.URL != "" || e.Style != "" {
		return fmt.Errorf("menu of %d options", len(e.Options))
	}
	for _, o := range e.Options {
		if o.Value == "" || len(o.Value) > 75 {
			return fmt.Errorf("option value %q", o.Value)
		}
		if err := o.Text.check(75); err != nil {
			return fmt.Errorf("option: %w", err)
		}
	}

	return nil
}

func checkView(raw []byte) error {
	var v struct {
		Type     string          `json:"type"`
		Callback string          `json:"callback_id"`
		Metadata string          `json:"private_metadata"`
		Title    *textObj        `json:"title"`
		Submit   *textObj        `json:"submit"`
		Close    *textObj        `json:"close"`
		Blocks   json.RawMessage `json:"blocks"`
	}
	if err := strict(raw, &v); err != nil {
		return err
	}
	if v.Type != "modal" || len(v.Metadata) > 3000 || v.Callback == "" || len(v.Callback) > 255 {
		return fmt.Errorf("type, callback_id or private_metadata")
	}
	for _, t := range []*textObj{v.Title, v.Submit, v.Close} {
		if err := t.check(24); err != nil {
			return err
		}
	}
	_, err := readBlocks(v.Blocks, 100)
	return err
}

// texts returns everything that a reader sees of blocks.
func texts(blocks []block) string {
	var out []string
	for _, b := range blocks {
		if b.Text != nil {
			out = append(out, b.Text.Text)
		}
		for _, e := range b.Elements {
			name := e.Text
			if name == nil {
				name = e.Placeholder
			}
			line := "[" + name.Text + "]"
			for _, o := range e.Options {
				line += "\n  <" + o.Text.Text + ">"
			}
			if e.URL != "" {
				line += " " + e.URL
			}
			out = append(out, line)
			if e.Confirm != nil {
				out = append(
					out,
					"  "+e.Confirm.Title.Text+" "+e.Confirm.Text.Text+" ["+e.Confirm.Confirm.Text+"] ["+
						e.Confirm.Deny.Text+"]",
				)
			}
		}
	}

	return strings.Join(out, "\n")
}
