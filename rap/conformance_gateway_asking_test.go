package rap_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/assent-dev/assent/approval/hold"
	"github.com/assent-dev/assent/rap/gateway"
	"github.com/assent-dev/assent/rap/internal/raptest"
)

func confT1(t *testing.T) {
	confSoon(t, map[string]func(*testing.T){
		"user": func(t *testing.T) {
			h, r := confGateway(t)
			acked := make(chan struct{})
			r.answers(func(cb *confCallback, _ int) int {
				<-acked // an implementation that acknowledges only afterwards would never acknowledge
				return 200
			})
			c := r.call("write_file", confMotd).invoke()
			close(acked)
			q := c.choice()
			if q.GroupID != c.in.GroupID || q.ID != c.in.ID {
				t.Errorf("asked about %s in %s", q.ID, q.GroupID)
			}
			for _, word := range []string{"write_file", "/etc/motd", "hello world!", "write 12 bytes to /etc/motd"} {
				if !strings.Contains(q.Prompt, word) {
					t.Errorf("the prompt does not show %q: %q", word, q.Prompt)
				}
			}
			once := q.Choices[q.index(t, "once")]
			if !strings.Contains(once, "write_file") && !strings.Contains(once, "write 12 bytes to /etc/motd") {
				t.Errorf("the label does not say what runs: %q", once)
			}
			h.through(r)
			if !r.alive(c.in.GroupID, c.in.ID) || c.count("") != 1 {
				t.Errorf("the call is not pending: %s", r.heard())
			}
			h.ran("write_file", 0)
		},
		"approvers": func(t *testing.T) {
			desk := raptest.NewDesk(t)
			h, r := confGateway(t, confAsk(gateway.AskApprovers, desk))
			c := r.call("write_file", confMotd).invoke()
			v := desk.Request(1).Verdict
			if v.Call.Tool != "write_file" || string(v.Call.Args) != confMotd {
				t.Errorf("the desk was shown %s %s", v.Call.Tool, v.Call.Args)
			}
			h.through(r)
			if c.count("") != 0 {
				t.Errorf("the runtime was sent something: %s", r.heard())
			}
			h.ran("write_file", 0)
		},
		"approvers, then the user": func(t *testing.T) {
			desk := raptest.NewDesk(t)
			h, r := confGateway(t, confAsk(gateway.AskBoth, desk))
			c := r.call("write_file", confMotd).invoke()
			desk.Request(1)
			h.through(r)
			if c.count("") != 0 {
				t.Errorf("the user was asked before the approvers: %s", r.heard())
			}
			desk.Decide(1, hold.Approved, "")
			c.choice()
			h.through(r)
			h.ran("write_file", 0)
		},
	})
}

func confT2(t *testing.T) {
	h, r := confGateway(t, confOffer)
	for _, c := range []*confCall{r.call("read_file", `{"path":"/a"}`), r.call("pay", `{"amount":50}`)} {
		c.with(func(in *confInvocation) {
			in.GroupID = "child"
			in.Ancestors = []string{"root", "parent"}
			in.UserID = "ann"
		}).invoke()
		if got, want := c.result(), "done "+string(c.in.Arguments); got != want {
			t.Errorf("%s: %q, want %q", c.in.Operation, got, want)
		}
		job := h.ops[c.in.Operation].begun(t, 1)
		if job.Caller != "alpha" || job.Thread != "child" || job.ID != c.in.ID || job.User != "ann" ||
			job.Operation != c.in.Operation ||
			!slices.Equal(job.Ancestors, c.in.Ancestors) ||
			string(job.Arguments) != string(c.in.Arguments) {
			t.Errorf("it ran as %+v", job)
		}

		if c.count("") != 1 {
			t.Errorf("more than a result: %s", r.heard())
		}
	}

	r.call("pay", `{"amount":500}`).invoke().choice()

	c, q := r.asked()
	c.picks(q, q.index(t, "session"))
	c.result()
	again := r.call("write_file", `{"path":"/b"}`).invoke()
	if got := again.result(); got != `done {"path":"/b"}` || again.count("user_choice") != 0 {
		t.Errorf("under a grant: %q\n%s", got, r.heard())
	}
	h.ran("write_file", 2)
}

func confT3(t *testing.T) {
	odd := "{ \"text\" : \"\\u0061\\/\" ,\n \"path\":\"/a\" }"
	confSoon(t, map[string]func(*testing.T){
		"user": func(t *testing.T) {
			h, r := confGateway(t)
			c := r.call("write_file", odd)
			c.raw = fmt.Sprintf(
				`{"operation":"write_file","arguments":%s,"id":"1","callback_url":%q,"group_id":"g"}`,
				odd,
				c.in.CallbackURL,
			)
			c.in.ID, c.in.GroupID = "1", "g"
			q := c.invoke().choice()
			c.picks(q, q.index(t, "once"))
			if got := c.result(); got != "done "+odd {
				t.Errorf("the result is %q", got)
			}
			if job := h.ops["write_file"].begun(t, 1); string(job.Arguments) != odd {
				t.Errorf("it ran with %q, want every byte of %q", job.Arguments, odd)
			}
			h.through(r)
			h.ran("write_file", 1)
			if c.count("tool_result") != 1 || c.count("user_choice") != 1 {
				t.Errorf("sent:\n%s", r.heard())
			}
		},
	})
}

// confRefuses is a later policy that denies everything the first one asks about.
const confRefuses = `
schema_version: "1.0.0"
policy_ref: acme.tools
description: Nothing any more.
rules:
  - {id: none, match: {targets: ["*"]}, deny: "Closed."}
`

func confT4(t *testing.T) {
	told := func(t *testing.T, h *confHarness, c *confCall) {
		t.Helper()
		if text := c.fails(); !confDenies(text) {
			t.Errorf("the result does not say that it was denied: %q", text)
		}
		h.through(c.confRuntime)
		h.ran("write_file", 0)
		if c.count("tool_result") != 1 {
			t.Errorf("sent:\n%s", c.heard())
		}
	}
	confSoon(t, map[string]func(*testing.T){
		"user": func(t *testing.T) {
			h, r := confGateway(t)
			c, q := r.asked()
			c.picks(q, *q.Default)
			told(t, h, c)
		},
		"by the rules of later": func(t *testing.T) {
			h, r := confGateway(t)
			c, q := r.asked()
			changed, q2 := r.asked()
			h.rules(strings.Replace(confToolsFile, "Keeps a few", "Keeps other", 1), confToolsPolicy)
			changed.picks(q2, 0)
			if text := changed.fails(); !strings.Contains(text, "changed since") {
				t.Errorf("the rules changed, and the result is %q", text)
			}
			h.rules(confToolsFile, confRefuses)
			c.picks(q, 0)
			if text := c.fails(); !confDenies(text) {
				t.Errorf("the result does not say that it was denied: %q", text)
			}
			h.ran("write_file", 0)
		},
		"user after the approvers": func(t *testing.T) {
			desk := raptest.NewDesk(t)
			h, r := confGateway(t, confAsk(gateway.AskBoth, desk))
			c := r.call("write_file", confMotd).invoke()
			desk.Decide(1, hold.Approved, "")
			q := c.choice()
			c.picks(q, *q.Default)
			desk.Dropped(1) // the approval is released
			told(t, h, c)
		},
	})
}

func confT5(t *testing.T) {
	h, r := confGateway(t, confOffer)
	for _, index := range []string{
		"len",
		"99",
		"2147483648",
		"4294967296",
		"18446744073709551616",
		"1" + strings.Repeat("0", 400),
	} {
		c, q := r.asked()
		if index == "len" {
			index = fmt.Sprint(len(q.Choices))
		}
		if status := c.answerRaw(q, fmt.Sprintf(`{"id":%q,"selected":%s}`, q.ID, index)); status == 0 || status >= 500 {
			t.Errorf("index %.20s: status %d", index, status)
		}
		c.fails()
		c.refuses(q)
		h.through(r)
		r.over(c.in.GroupID, c.in.ID)
		if c.count("tool_result") != 1 {
			t.Errorf("index %.20s: the call is not over\n%s", index, r.heard())
		}
	}

	h.ran("write_file", 0)
}

func confT10(t *testing.T) {
	for name, whom := range map[string]gateway.Whom{
		"user":      gateway.AskUser,
		"approvers": gateway.AskApprovers,
		"both":      gateway.AskBoth,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			desk := raptest.NewDesk(t)
			h, r := confGateway(t, confAsk(whom, desk))
			c := r.call("write_file", confMotd).invoke()
			if whom == gateway.AskUser {
				c.choice()
			} else {
				desk.Request(1)
			}
			h.clock.pass(9 * time.Minute)
			h.through(r)
			if c.count("tool_result") != 0 {
				t.Fatal("it ended before the documented ten minutes")
			}
			h.clock.pass(61 * time.Second)
			c.fails()
			if whom == gateway.AskUser {
				c.refuses(c.choice())
			} else {
				desk.Dropped(1)
			}
			h.through(r)
			h.ran("write_file", 0)
			if c.count("tool_result") != 1 {
				t.Errorf("sent:\n%s", r.heard())
			}
		})
	}
}

func confT24(t *testing.T) {
	for name, change := range map[string]func(*gateway.Config){
		"once": func(*gateway.Config) {},
		"with a session": func(cfg *gateway.Config) {
			cfg.Grants = gateway.SessionGrants{Offer: true, For: time.Minute, Uses: 3, Children: true}
		},
		"without labels": func(cfg *gateway.Config) {
			for i := range cfg.Operations {
				cfg.Operations[i].Label = nil
			}
		},
		"after approvers": func(cfg *gateway.Config) {
			desk := raptest.NewDesk(t)
			cfg.Ask = gateway.AskBoth
			cfg.People = desk
			cfg.Grants.Offer = true
			go desk.Decide(1, hold.Approved, "")
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h, r := confGateway(t, change)
			c, q := r.asked()
			if last := len(q.Choices) - 1; last < 1 || *q.Default != last || !confDenies(q.Choices[last]) {
				t.Errorf("default %d of %q", *q.Default, q.Choices)
			}
			if offered := strings.Contains(
				strings.ToLower(strings.Join(q.Choices, " ")),
				"session",
			); offered != (name == "with a session") && h.cfg.Ask == gateway.AskUser {
				t.Errorf("choices %q", q.Choices)
			}

			for _, label := range q.Choices[:len(q.Choices)-1] {
				if confDenies(label) {
					t.Errorf("an allowing label reads as a denial: %q", label)
				}
			}
			c.picks(q, *q.Default)
			c.fails()
			h.ran("write_file", 0)
		})
	}
}

func confT36(t *testing.T) {
	h, r := confGateway(t)
	var calls []*confCall
	for range 3 {
		c, _ := r.asked()
		calls = append(calls, c)
	}
	h.clock.pass(11 * time.Minute)
	for _, c := range calls {
		c.fails()
		c.refuses(c.choice())
		if c.count("user_choice") != 1 {
			t.Errorf("asked again\n%s", r.heard())
		}
	}

	h.ran("write_file", 0)
}
