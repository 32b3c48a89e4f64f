package hold_test

import (
	"errors"
	"net/url"
	"strings"
	"testing"

	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/approval/hold"
	"github.com/assent-dev/assent/internal/assenttest"
	"github.com/assent-dev/assent/resolve"
)

// desk gives a test the requests of one program of agent desk, with helpers.
type desk struct {
	t *testing.T
	h *assenttest.Assent
	seat
}

func (d *desk) open(key string, v hold.Verdict) hold.Held {
	d.t.Helper()
	got, err := d.Open(d.t.Context(), key, v)
	must(d.t, err)
	return got
}

func (d *desk) look(ref string) hold.Held {
	d.t.Helper()
	got, err := d.Look(d.t.Context(), ref)
	must(d.t, err)
	return got
}

// refuses expects Claim to fail with a *ClaimError that has the wanted request state or wraps the
// wanted error of package approval.
func (d *desk) refuses(ref, key string, v hold.Verdict, want any) *hold.ClaimError {
	d.t.Helper()
	err := d.Claim(d.t.Context(), ref, key, v)
	var refused *hold.ClaimError
	if !errors.As(err, &refused) || !errors.Is(err, hold.ErrNotClaimed) || refused.Error() == "" {
		d.t.Fatalf("the claim got %v, want %v", err, want)
	}
	because, ok := want.(error)
	if ok && (refused.State != "" || !errors.Is(err, because)) || !ok && refused.State != want {
		d.t.Fatalf("the claim got %+v, want %v", refused, want)
	}

	return refused
}

func (d *desk) takes(ref, key string, v hold.Verdict) {
	d.t.Helper()
	if err := d.Claim(d.t.Context(), ref, key, v); err != nil {
		d.t.Fatalf("the claim got %v", err)
	}
}

func atDesks(t *testing.T, test func(t *testing.T, h *assenttest.Assent, d *desk)) {
	t.Helper()
	onBothSides(t, func(t *testing.T, h *assenttest.Assent, of func(token, agentID string) seat) {
		test(t, h, &desk{t, h, of("rt", "desk")})
	})
}

// TestRulesThatChange: an approval becomes void if the rules change, and a repetition of the claim
// that detected this gets the same answer.
func TestRulesThatChange(t *testing.T) {
	atDesks(t, func(t *testing.T, h *assenttest.Assent, d *desk) {
		v := asks("trade", `{}`)
		ref := d.open("k", v).Ref
		h.Votes(ref, "mara", approval.Approve, approval.VoteApproved, nil)
		h.Rewrite("agents/desk.agf.yaml", `version: "1.0.0"`, `version: "1.0.1"`)
		for range 2 {
			if e := d.refuses(ref, "run", v, hold.Expired); !strings.Contains(e.Error(), "the rules changed") {
				t.Errorf("got %v", e)
			}
		}
		if got := d.look(ref); got.State != hold.Expired {
			t.Errorf("got %+v", got)
		}
	})
}

func TestCancel(t *testing.T) {
	atDesks(t, func(t *testing.T, h *assenttest.Assent, d *desk) {
		v := asks("trade", `{"amount":1}`)
		ref := d.open("k", v).Ref
		for range 2 {
			must(t, d.Cancel(t.Context(), ref, "the user went on"))
		}
		if got := d.look(ref); got.State != hold.Cancelled || got.By != "rt" || got.Reason != "the user went on" {
			t.Errorf("got %+v", got)
		}
		d.refuses(ref, "run", v, hold.Cancelled)

		v = asks("trade", `{"amount":2}`)
		ref = d.open("k2", v).Ref
		h.Votes(ref, "mara", approval.Approve, approval.VoteApproved, nil)
		must(t, d.Cancel(t.Context(), ref, ""))
		if got := d.look(ref); got.State != hold.Cancelled {
			t.Errorf("an approval that was taken back: %+v", got)
		}
		d.refuses(ref, "run", v, hold.Cancelled)
		must(t, d.Cancel(t.Context(), "", "nobody was asked"))
	})
}

// TestDenials covers the calls that are denied without asking people.
func TestDenials(t *testing.T) {
	atDesks(t, func(t *testing.T, h *assenttest.Assent, d *desk) {
		denied := func(key string, v hold.Verdict, want string) {
			t.Helper()
			if got := d.open(key, v); got.State != hold.Denied || got.Ref != "" || !strings.Contains(got.Reason, want) {
				t.Errorf("got %+v, want %q", got, want)
			}
		}
		denied("k1", asks("drop", `{}`), "Dropping tables is not delegated.")
		denied("k2", asks("nothing", `{}`), "nothing")
		denied("k3", asks("trade", `{"amount":1,"amount":2}`), "arguments")

		v := asks("trade", `{"amount":3}`)
		ref := d.open("k4", v).Ref
		h.Votes(ref, "mara", approval.Deny, approval.VoteDenied, func(in *approval.VoteInput) {
			in.Reason = "never on Fridays"
		})
		denied("k5", v, "a person denied this same call a moment ago: never on Fridays")
		v = asks("trade", `{"amount":4}`)
		ref = d.open("k6", v).Ref
		h.Votes(ref, "mara", approval.Respond, approval.VoteDenied, func(in *approval.VoteInput) {
			in.Response = "sold already"
		})
		denied("k7", v, "a person answered this same call a moment ago: sold already")

		local := asks("trade", `{"amount":5}`)
		local.Decision = resolve.Decision{Message: "not by this plan"}
		denied("k8", local, "not by this plan")
		all, err := h.Store.Requests(t.Context(), "acme", approval.Filter{})
		must(t, err)
		if len(all.Requests) != 2 {
			t.Errorf("people were asked: %+v", all.Requests)
		}

		must(t, h.Service.Freeze(t.Context(), "acme", "desk", "mara", "odd"))
		denied("k9", asks("trade", `{"amount":6}`), "agent desk is frozen by mara")
		d.refuses("", "run", v, approval.ErrNotFound)
	})
}

// TestFrozen: a freeze blocks an approval, and lifting the freeze makes it usable again.
func TestFrozen(t *testing.T) {
	atDesks(t, func(t *testing.T, h *assenttest.Assent, d *desk) {
		v := asks("trade", `{}`)
		ref := d.open("k", v).Ref
		h.Votes(ref, "mara", approval.Approve, approval.VoteApproved, nil)
		must(t, h.Service.Freeze(t.Context(), "acme", "", "mara", "odd"))
		if e := d.refuses(ref, "run", v, approval.ErrFrozen); !errors.Is(e, approval.ErrFrozen) {
			t.Errorf("got %v", e.Err)
		}
		must(t, h.Service.Thaw(t.Context(), "acme", "", "mara", ""))
		d.takes(ref, "run", v)
	})
}

// TestLetThrough: a call that needs no approval when it is opened runs if it still needs none when
// it is claimed.
func TestLetThrough(t *testing.T) {
	atDesks(t, func(t *testing.T, h *assenttest.Assent, d *desk) {
		v := asks("quote", `{"of":"ACME"}`)
		got := d.open("thread 1 / call 2", v)
		if got.State != hold.Approved || got.Ref == "" || got.By != "" || got.Where != "" || !got.Expires.IsZero() {
			t.Fatalf("got %+v", got)
		}
		if again := d.open("thread 1 / call 2", v); again.Ref != got.Ref {
			t.Errorf("opened again: %+v", again)
		}
		if seen := d.look(got.Ref); seen.State != hold.Approved || seen.Ref != got.Ref {
			t.Errorf("got %+v", seen)
		}
		d.takes(got.Ref, "run", v)
		d.takes(got.Ref, "run", v)
		d.refuses(got.Ref, "run", asks("quote", `{"of":"INIT"}`), approval.ErrBinding)
		must(t, d.Cancel(t.Context(), got.Ref, ""))

		must(t, h.Service.Freeze(t.Context(), "acme", "desk", "mara", "odd"))
		d.refuses(got.Ref, "run", v, approval.ErrFrozen)
		must(t, h.Service.Thaw(t.Context(), "acme", "desk", "mara", ""))
		h.Rewrite("policies/controls.policy.yaml", "targets: [wire]", "targets: [wire, quote]")
		d.refuses(got.Ref, "run", v, hold.Pending)
		if now := d.open("thread 1 / call 2", v); now.State != hold.Pending {
			t.Errorf("the same key does not give the request: %+v", now)
		}
		h.Rewrite("policies/controls.policy.yaml", "targets: [drop]", "targets: [drop, quote]")
		d.refuses(got.Ref, "run", v, hold.Pending) // the key remains used for the first request
		fresh := asks("quote", `{"of":"FRESH"}`)
		if now := d.open("k3", fresh); now.State != hold.Denied {
			t.Errorf("got %+v", now)
		}
	})
}

// TestLetThroughThenDenied: a call that needed no approval does not run if the rules deny it by the
// time of the claim.
func TestLetThroughThenDenied(t *testing.T) {
	atDesks(t, func(t *testing.T, h *assenttest.Assent, d *desk) {
		v := asks("quote", `{}`)
		ref := d.open("k", v).Ref
		h.Rewrite("policies/controls.policy.yaml", "targets: [drop]", "targets: [drop, quote]")
		if e := d.refuses(ref, "run", v, hold.Denied); !strings.Contains(e.Detail, "not delegated") {
			t.Errorf("got %v", e)
		}
	})
}

// TestStandingApproval: a grant covers a call. Its use is counted once per key, and it covers calls
// only as long as it is live.
func TestStandingApproval(t *testing.T) {
	atDesks(t, func(t *testing.T, h *assenttest.Assent, d *desk) {
		first := d.open("k1", asks("spend", `{"amount":10}`))
		h.Votes(first.Ref, "mara", approval.Approve, approval.VoteApproved, func(in *approval.VoteInput) {
			in.Grant = &approval.GrantOffer{
				MaxUses: 5,
				Bounds:  []approval.Bound{{Path: "amount", Kind: approval.AtMost}},
			}
		})
		d.takes(first.Ref, "run", asks("spend", `{"amount":10}`))

		v := asks("spend", `{"amount":9}`)
		got := d.open("k2", v)
		if got.State != hold.Approved || !strings.HasPrefix(got.By, "mara (standing approval grt_") ||
			got.Expires.IsZero() {
			t.Fatalf("got %+v", got)
		}
		d.takes(got.Ref, "run", v)
		d.takes(got.Ref, "run", v)
		d.refuses(got.Ref, "run", asks("spend", `{"amount":8}`), approval.ErrBinding)
		grants, err := h.Store.Grants(t.Context(), "acme", true, h.Clock.Now())
		must(t, err)
		if len(grants) != 1 || grants[0].Uses != 1 {
			t.Errorf("got %+v", grants)
		}
		_, err = h.Service.Revoke(t.Context(), "acme", grants[0].ID, "mara", "enough")
		must(t, err)
		d.refuses(got.Ref, "run", v, hold.Pending)
	})
}

// TestKeys: one key always means one request, whatever characters it contains, and identical calls
// share one request with one run.
func TestKeys(t *testing.T) {
	atDesks(t, func(t *testing.T, h *assenttest.Assent, d *desk) {
		v := asks("trade", `{"amount":1}`)
		seen := map[string]string{}
		for i, key := range []string{
			"k",
			strings.Repeat("k", 5000),
			"ünïcödé\x00\n \"key\"",
			" k",
			"k ",
			strings.Repeat("k", 5001),
		} {
			call := asks("trade", `{"amount":`+string(rune('1'+i))+`}`)
			seen[key] = d.open(key, call).Ref
			if again := d.open(key, call); again.Ref != seen[key] || again.Ref == "" {
				t.Errorf("%.20q: got %+v", key, again)
			}
			if _, err := d.Open(t.Context(), key, asks("trade", `{"amount":100}`)); !errors.Is(
				err,
				approval.ErrKeyReuse,
			) {
				t.Errorf("%.20q: another call under the same key: %v", key, err)
			}
		}

		shared := d.open("other", v)
		if shared.Ref != seen["k"] {
			t.Errorf("identical calls: got %+v", shared)
		}
		h.Votes(shared.Ref, "mara", approval.Approve, approval.VoteApproved, nil)
		odd := strings.Repeat("ß", 3000)
		d.takes(shared.Ref, odd, v)
		d.takes(shared.Ref, odd, v)
		d.refuses(shared.Ref, odd+"ß", v, approval.ErrConsumed)
	})
}

// TestKeysOfTwoPrograms: the same key of two programs means two different requests.
func TestKeysOfTwoPrograms(t *testing.T) {
	onBothSides(t, func(t *testing.T, h *assenttest.Assent, of func(token, agentID string) seat) {
		one := (&desk{t, h, of("rt", "desk")}).open("k", asks("trade", `{"amount":1}`))
		two := (&desk{t, h, of("rt2", "desk")}).open("k", asks("trade", `{"amount":2}`))
		if one.Ref == two.Ref {
			t.Errorf("got %+v twice", one)
		}
	})
}

func TestWhatCantBePresented(t *testing.T) {
	atDesks(t, func(t *testing.T, h *assenttest.Assent, d *desk) {
		marker := hold.Verdict{Decision: resolve.Decision{Outcome: resolve.Ask}}
		_, err := d.Open(t.Context(), "k", marker)
		if !errors.Is(err, hold.ErrNoCall) || !errors.Is(d.Claim(t.Context(), "apr_x", "k", marker), hold.ErrNoCall) {
			t.Errorf("got %v", err)
		}
		_, err = d.Open(t.Context(), "", asks("trade", `{}`))
		if !errors.Is(err, hold.ErrNoKey) ||
			!errors.Is(d.Claim(t.Context(), "apr_x", "", asks("trade", `{}`)), hold.ErrNoKey) {
			t.Errorf("got %v", err)
		}
		decoded := asks("trade", `{}`)
		decoded.Call.Args, decoded.Call.Values = nil, map[string]any{"amount": 1}
		for name, v := range map[string]hold.Verdict{
			"broken":  asks("trade", `{"amount":`),
			"a field": asks("trade", `{},"session":"mine"`),
			"decoded": decoded,
			"a name":  asks("tr\xffde", `{}`),
		} {
			if got, err := d.Open(t.Context(), "k", v); err == nil {
				t.Errorf("%s: got %+v", name, got)
			}
			if err := d.Claim(t.Context(), "apr_x", "k", v); err == nil || errors.As(err, new(*hold.ClaimError)) {
				t.Errorf("%s: got %v", name, err)
			}
		}
	})
}

// TestForeignRequests: a holder finds only the requests that its own runtime made for its own
// agent.
func TestForeignRequests(t *testing.T) {
	onBothSides(t, func(t *testing.T, h *assenttest.Assent, of func(token, agentID string) seat) {
		v := asks("trade", `{}`)
		mine := &desk{t, h, of("rt", "desk")}
		ref := mine.open("k", v).Ref
		h.Votes(ref, "mara", approval.Approve, approval.VoteApproved, nil)
		for name, d := range map[string]*desk{
			"another program": {t, h, of("thief", "desk")},
			"another agent":   {t, h, of("rt", "other")},
		} {
			_, err := d.Look(t.Context(), ref)
			if !errors.Is(err, approval.ErrNotFound) || !errors.Is(err, hold.ErrNoRequest) {
				t.Errorf("%s looks: %v", name, err)
			}
			if err := d.Cancel(t.Context(), ref, ""); !errors.Is(err, approval.ErrNotFound) {
				t.Errorf("%s cancels: %v", name, err)
			}
		}

		(&desk{t, h, of("thief", "desk")}).refuses(ref, "run", v, approval.ErrNotFound)
		stranger := &desk{t, h, of("rt", "other")}
		if err := stranger.Claim(t.Context(), ref, "run", asks("trade", `{"amount":2}`)); !errors.As(
			err,
			new(*hold.ClaimError),
		) {
			t.Errorf("another agent claims: %v", err)
		}

		for _, odd := range []string{"apr_none", "..", "a/b", "let:", "let:abc", "\x00", ""} {
			if _, err := mine.Look(t.Context(), odd); err == nil {
				t.Errorf("%q is looked at", odd)
			}
			if err := mine.Claim(t.Context(), odd, "run", v); err == nil {
				t.Errorf("%q is claimed", odd)
			}
		}

		mine.refuses("let:abc:k", "run", v, approval.ErrBinding)
		mine.takes(ref, "run", v)
		_, err := of("rt", "nobody").Open(t.Context(), "k", v)
		if !errors.Is(err, approval.ErrUnknownAgent) {
			t.Errorf("an agent that nobody knows: %v", err)
		}
	})
}

// TestDown: if the store or the server is down, nothing is approved and nothing may run, but the
// error is not a refusal.
func TestDown(t *testing.T) {
	for name, end := range map[string]func(h *assenttest.Assent){"the store": func(h *assenttest.Assent) {
		h.Store.Close()
	}, "the server": func(h *assenttest.Assent) {
		h.Stop()
		h.Store.Close()
	}} {
		t.Run(name, func(t *testing.T) {
			atDesks(t, func(t *testing.T, h *assenttest.Assent, d *desk) {
				v := asks("trade", `{}`)
				ref, free := d.open("k", v).Ref, d.open("k2", asks("quote", `{}`)).Ref
				h.Votes(ref, "mara", approval.Approve, approval.VoteApproved, nil)
				end(h)
				for _, err := range []error{
					func() error {
						_, err := d.Open(t.Context(), "k3", v)
						return err
					}(),
					func() error {
						_, err := d.Look(t.Context(), ref)
						return err
					}(),
					d.Claim(t.Context(), ref, "run", v),
					d.Claim(t.Context(), free, "run", asks("quote", `{}`)),
					d.Cancel(t.Context(), ref, ""),
				} {
					if err == nil || errors.As(err, new(*hold.ClaimError)) {
						t.Errorf("got %v", err)
					}
				}
			})
		})
	}
}

// TestWhere: the page is below the inbox's URL, and empty without an inbox.
func TestWhere(t *testing.T) {
	h := newAssent(t, assenttest.Config{})
	for base, want := range map[string]string{
		"":                          "",
		"https://assent.example/in": "https://assent.example/in/requests/",
	} {
		people := hold.Service(h.Service, h.Store, hold.Place{Tenant: "acme", Agent: "desk", Inbox: base})
		d := &desk{t, h, seat{Requests: people.As(approval.Asker{Token: "rt", Person: "ben"})}}
		got := d.open("k"+url.QueryEscape(base), asks("trade", `{"amount":1}`))
		if want != "" {
			want += got.Ref
		}
		if got.Where != want {
			t.Errorf("got %q, want %q", got.Where, want)
		}
		h.Votes(got.Ref, "ben", approval.Approve, approval.VoteNotEligible, nil) // the program's owner may not vote
	}
}

// TestAskedAnyway: on every side, people are asked about an allowed call if the verdict has a
// reason to ask.
func TestAskedAnyway(t *testing.T) {
	atDesks(t, func(t *testing.T, h *assenttest.Assent, d *desk) {
		v := asks("quote", `{"of":"ACME"}`)
		v.Ask = "the tool is another one than before"
		got := d.open("k", v)
		if got.State != hold.Pending {
			t.Fatalf("got %+v", got)
		}
		d.refuses(got.Ref, "run", v, hold.Pending)
		h.Votes(got.Ref, "mara", approval.Approve, approval.VoteApproved, nil)
		d.takes(got.Ref, "run", v)

		free := asks("quote", `{"of":"INIT"}`)
		ref := d.open("k2", free).Ref
		free.Ask = v.Ask
		d.refuses(ref, "run", free, hold.Pending)
	})
}
