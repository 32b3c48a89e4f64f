package slack

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func encoded(payload string) []byte { return []byte(url.Values{"payload": {payload}}.Encode()) }

func FuzzParseBody(f *testing.F) {
	f.Add([]byte("payload="))
	f.Add(
		encoded(
			`{"type":"block_actions","user":{"id":"U1","team_id":"T1"},"actions":[{"action_id":"assent_approve",` +
				`"value":"apr_1 0 0123456789abcdef"}]}`,
		),
	)
	f.Add(
		encoded(
			`{"type":"block_actions","user":{"id":"U1"},"team":{"id":"T1"},"actions":[{"action_id":"assent_deny",` +
				`"value":"apr_1 2 0123456789abcdef"}]}`,
		),
	)
	f.Add(
		encoded(`{"type":"view_submission","user":{"id":"U1","team_id":"T1"},"view":{"callback_id":"assent_deny",` +
			`"private_metadata":"{\"ticket\":\"apr_1 0 0123456789abcdef\"}"}}`),
	)
	f.Add(encoded(`{"type":"view_submission","user":{"id":"U1","team_id":"T1"},"view":{"callback_id":"assent_answer",` +
		`"private_metadata":"{\"ticket\":\"qst_1 0 0123456789abcdef\"}","state":{"values":{"field_0":{"value":` +
		`{"selected_options":[{"value":"1"}]}}}}}}`))
	f.Add(encoded(`{"type":"shortcut"}`))
	f.Add(
		encoded(
			`{"type":"block_actions","user":{"id":"U1","team_id":"T1"},"actions":[{"action_id":"assent_choose_1",` +
				`"value":"qst_1 0 0123456789abcdef 1"}]}`,
		),
	)
	f.Add(
		encoded(
			`{"type":"block_actions","user":{"id":"U1","team_id":"T1"},"actions":[{"action_id":"assent_choose",` +
				`"selected_option":{"value":"qst_1 0 0123456789abcdef 99"}}]}`,
		),
	)
	f.Add(
		encoded(
			`{"type":"block_actions","user":{"id":"U1","team_id":"T1"},"actions":[{"action_id":"assent_dismiss",` +
				`"value":"qst_1 0 0123456789abcdef"}]}`,
		),
	)
	f.Fuzz(func(t *testing.T, body []byte) {
		in, err := parseBody(body)
		if err != nil || in.step == stepNone {
			return
		}
		if !userForm().MatchString(in.user) || !teamForm().MatchString(in.team) || strings.Count(in.name(), ":") != 2 {
			t.Errorf("took %q as a name", in.name())
		}
		if again, err := parseTicket(in.ticket.String()); err != nil || again != in.ticket {
			t.Errorf("the ticket %+v reads back as %+v, %v", in.ticket, again, err)
		}
		if (in.step == stepChoose) != (in.choice != nil) || in.choice != nil && *in.choice < 0 {
			t.Errorf("%s with the choice %v", in.step, in.choice)
		}
	})
}

func FuzzParseTicket(f *testing.F) {
	f.Add("apr_06eaih8a00b6soasr573m6p62c 0 4eeb698f2ad8b90d")
	f.Add("apr_1 01 0123456789abcdef")
	f.Add("apr_1 999999999 0123456789abcdef ")
	f.Fuzz(func(t *testing.T, s string) {
		if got, err := parseTicket(s); err == nil && got.String() != s {
			t.Errorf("%q and %q are the same ticket", s, got.String())
		}
	})
}

func FuzzParseChoice(f *testing.F) {
	f.Add("qst_06eaih8a00b6soasr573m6p62c 0 4eeb698f2ad8b90d 1")
	f.Add("qst_1 0 0123456789abcdef 01")
	f.Add("qst_1 0 0123456789abcdef -1")
	f.Add("qst_1 0 0123456789abcdef ")
	f.Add("qst_1 0 0123456789abcdef")
	f.Fuzz(func(t *testing.T, s string) {
		got, err := parseChoice(s)
		if err == nil && got.String() != s {
			t.Errorf("%q and %q are the same choice", s, got.String())
		}
		if err != nil && got.Request != "" {
			t.Errorf("%q was refused, and says %+v", s, got)
		}
	})
}

func FuzzVerify(f *testing.F) {
	const secret, body = "8f742231b10e8888abcd99yyyzzz85a5", "token=xyzz0WbapA4vBCDEFasx0q6G&team_id=T1DC2JH3J&team_domain=testteamnow&channel_id=G8PSS9T3V&channel_name=foobar&user_id=U2CERLKJA&user_name=roadrunner&command=%2Fwebhook-collect&text=&response_url=https%3A%2F%2Fhooks.slack.com%2Fcommands%2FT1DC2JH3J%2F397700885554%2F96rGlfmibIGlgcZRskXaIFfN&trigger_id=398738663015.47445629121.803a0bc887a14d10d2c447fce8b6703c"
	const stamp, signature = "1531420618", "v0=a2114d57b48eac39b9ad189dd8316235a7b4a8d21a10bd27519666489c69b503"
	now := time.Unix(1531420618, 0)
	check := func(stamp, signature, body string) error {
		h := http.Header{}
		h.Set(headerTimestamp, stamp)
		h.Set(headerSignature, signature)
		return verify(secret, h, []byte(body), now)
	}
	if err := check(stamp, signature, body); err != nil { // the example of Slack's documentation
		f.Fatal(err)
	}
	f.Add(stamp, signature, body)
	f.Add("-9223372036854775808", "v0=", "")
	f.Add("9223372036854775807", "v0=00", "x")
	f.Fuzz(func(t *testing.T, s, sig, b string) {
		if check(s, sig, b) == nil && (s != stamp || !strings.EqualFold(sig[3:], signature[3:]) || b != body) {
			t.Errorf("took what nobody signed: %q %q %q", s, sig, b)
		}
	})
}

func TestReplaysAreForgottenInTheEnd(t *testing.T) {
	now := time.Unix(1_700_000_000, 0)
	var p replays
	for i := range 1000 {
		if !p.first(strings.Repeat("a", i+1), now.Add(time.Duration(i)*time.Second)) {
			t.Fatal("a new signature was refused")
		}
	}
	if !p.first("new", now.Add(time.Hour)) || len(p.seen) > 1 {
		t.Errorf("%d signatures are kept", len(p.seen))
	}
}

func TestTicketsKeepWhatTheySay(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := ticket{
			Request:  "apr_" + rapid.StringMatching(`[0-9a-v]{26}`).Draw(t, "id"),
			Revision: rapid.IntRange(0, 1000).Draw(t, "revision"),
			Also:     rapid.IntRange(0, 50).Draw(t, "also"),
			Binding:  rapid.StringMatching(`[0-9a-f]{16}`).Draw(t, "binding"),
		}
		if got, err := parseTicket(want.String()); err != nil || got != want {
			t.Fatalf("got %+v, %v", got, err)
		}
	})
}
