package raptools

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/approval/hold"
	"github.com/assent-dev/assent/internal/durable"
	"github.com/assent-dev/assent/policy"
	"github.com/assent-dev/assent/resolve"
	"github.com/assent-dev/assent/store"
)

// UserConfig configures the storage of a User.
type UserConfig struct {
	Records   store.Records    // may be those of the runtime
	Namespace string           // namespace of its records; must be different for every User of a store
	Key       []byte           // 32 secret bytes that encrypt the records
	Now       func() time.Time // the clock; time.Now if nil
}

// User implements the people of a runtime whose tools an agent's loop calls: the user of the
// loop answers with responses to the loop's requests. Questions that only other people may
// answer (because of the tool server's answered_by, or a policy that names approvers or hides
// arguments) are denied, since those people can't be asked here.
//
// Questions and answers are stored, so they survive the process.
type User struct {
	vault *durable.Vault[asked]
	now   func() time.Time

	mu       sync.Mutex
	watching map[int]func(ref string)
	watchers int
}

// NewUser returns a User, or an error for an invalid configuration.
func NewUser(cfg UserConfig) (*User, error) {
	if cfg.Records == nil || cfg.Namespace == "" {
		return nil, errors.New("make the user of a loop: records and namespace are needed")
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	vault, err := durable.NewVault[asked](durable.Sealing{
		Records:   cfg.Records,
		Namespace: cfg.Namespace,
		Key:       cfg.Key,
		Purpose:   "assent rap user ",
	}, "asked")
	if err != nil {
		return nil, fmt.Errorf("make the user of a loop: %w", err)
	}

	return &User{vault: vault, now: cfg.Now, watching: map[int]func(string){}}, nil
}

// asked is one question, or one approval.
type asked struct {
	Tool      string     `json:"tool"`
	Arguments []byte     `json:"arguments"`
	Prompt    string     `json:"prompt"`
	Choices   []string   `json:"choices,omitempty"`
	Default   int        `json:"default,omitempty"`
	Binding   string     `json:"binding,omitempty"` // binding of the call to approve; empty for a question
	State     hold.State `json:"state"`
	Selected  int        `json:"selected,omitempty"`
	By        string     `json:"by,omitempty"`
	Reason    string     `json:"reason,omitempty"`
	Claimed   string     `json:"claimed,omitempty"` // key of the single run that the approval allows
	Until     time.Time  `json:"until"`
}

const (
	unlimited = 30 * 24 * time.Hour // lifetime of requests without a deadline
	remember  = 24 * time.Hour      // how long an ended request is kept
)

// As returns the requests of one asker.
func (u *User) As(who approval.Asker) hold.Requests { return &seat{u, who} }

// Watch calls changed for each answer until ctx ends.
func (u *User) Watch(ctx context.Context, changed func(ref string)) error {
	u.mu.Lock()
	u.watchers++
	me := u.watchers
	u.watching[me] = changed
	u.mu.Unlock()
	defer func() {
		u.mu.Lock()
		defer u.mu.Unlock()
		delete(u.watching, me)
	}()
	changed("") // another process may have received answers
	<-ctx.Done()

	return ctx.Err()
}

func (u *User) tell(ref string) {
	u.mu.Lock()
	all := slices.Collect(maps.Values(u.watching))
	u.mu.Unlock()
	for _, changed := range all {
		changed(ref)
	}
}

// read returns a request, or hold.ErrNoRequest.
func (u *User) read(ctx context.Context, ref string) (*asked, error) {
	d, err := u.vault.Get(ctx, ref)
	if errors.Is(err, approval.ErrNotFound) {
		return nil, fmt.Errorf("look at a question to the user: %w", hold.ErrNoRequest)
	}
	if err != nil {
		return nil, fmt.Errorf("look at a question to the user: %w", err)
	}
	u.expire(&d.Body)

	return &d.Body, nil
}

func (u *User) expire(q *asked) {
	if q.State == hold.Pending && !u.now().Before(q.Until) {
		q.State = hold.Expired
	}
}

// settle changes a request and notifies the runtime.
func (u *User) settle(ctx context.Context, ref string, change func(*asked) error) error {
	_, err := u.vault.Edit(ctx, ref, func(d *durable.Doc[asked]) error {
		if d.Version == 0 {
			return hold.ErrNoRequest
		}
		u.expire(&d.Body)

		return change(&d.Body)
	})
	if err == nil {
		u.tell(ref)
	}

	return err
}

// seat is the user for one asker.
type seat struct {
	u   *User
	who approval.Asker
}

// put stores a request, once for each key.
func (s *seat) put(ctx context.Context, key string, within time.Duration, q asked) (string, error) {
	if key == "" {
		return "", hold.ErrNoKey
	}
	if within <= 0 {
		within = unlimited
	}
	ref := "loop_" + durable.Hash(s.who.Token + "\x00" + s.who.Person + "\x00" + key)[:32]
	_, err := s.u.vault.Edit(ctx, ref, func(d *durable.Doc[asked]) error {
		if d.Version != 0 {
			return durable.ErrUnchanged
		}
		q.Until = s.u.now().Add(within)
		d.Body, d.Expires = q, q.Until.Add(remember)

		return nil
	})
	if err != nil && !errors.Is(err, durable.ErrUnchanged) {
		return "", fmt.Errorf("ask the user: %w", err)
	}

	return ref, nil
}

// Ask asks the user a question.
func (s *seat) Ask(ctx context.Context, key string, q hold.Question) (string, error) {
	if q.Call == nil {
		return "", hold.ErrNoCall
	}
	if len(q.Schema) > 0 || len(q.Choices) == 0 || q.Default < 0 || q.Default >= len(q.Choices) {
		return "", errors.New("ask the user: expected a question with choices and one of them as its default")
	}
	state, reason := hold.Pending, ""
	if len(q.Groups) > 0 {
		state, reason = hold.Denied, "others than the user of the agent are to answer, who can't be asked here"
	}

	return s.put(ctx, key, q.Within, asked{
		Tool:      q.Call.Tool,
		Arguments: q.Call.Args,
		Prompt:    q.Prompt,
		Choices:   q.Choices,
		Default:   q.Default,
		State:     state,
		Reason:    reason,
	})
}

// Answer returns the state of a question.
func (s *seat) Answer(ctx context.Context, ref string) (hold.Answer, error) {
	q, err := s.u.read(ctx, ref)
	if err != nil {
		return hold.Answer{}, err
	}

	return hold.Answer{
		State:    q.State,
		Selected: q.Selected,
		By:       q.By,
		Reason:   q.Reason,
	}, nil
}

// Open asks the user whether a call may run.
func (s *seat) Open(ctx context.Context, key string, v hold.Verdict) (hold.Held, error) {
	switch {
	case v.Call == nil:
		return hold.Held{}, hold.ErrNoCall
	case v.Outcome != resolve.Ask || v.Binding == "":
		return hold.Held{}, errors.New("ask the user: expected a call that the rules want approved")
	}

	if why := barred(v.Require); why != "" {
		return hold.Held{State: hold.Denied, Reason: why}, nil
	}
	ref, err := s.put(ctx, key, v.Within(), asked{
		Tool:      v.Call.Tool,
		Arguments: v.Call.Args,
		Prompt:    v.Message,
		Binding:   v.Binding,
		State:     hold.Pending,
	})
	if err != nil {
		return hold.Held{}, err
	}

	return s.Look(ctx, ref)
}

// barred returns the reason why the user alone can't approve, or an empty string.
func barred(r *policy.Require) string {
	switch {
	case r == nil:
		return ""
	case len(r.Stages)+len(r.AnyOf)+len(r.Escalate) > 0:
		return "the rules want an approval of other people than the user of the agent, who can't be asked here"
	case !r.Reason.IsZero():
		return "the rules want a reason for the approval, which the user of the agent can't be asked for here"
	case len(r.Arguments.Redact) > 0:
		return "the rules hide arguments, so the user of the agent can't be asked about them"
	}

	return ""
}

// Look returns the state of an approval.
func (s *seat) Look(ctx context.Context, ref string) (hold.Held, error) {
	q, err := s.u.read(ctx, ref)
	if err != nil {
		return hold.Held{}, err
	}

	return hold.Held{
		Ref:     ref,
		State:   q.State,
		By:      q.By,
		Reason:  q.Reason,
		Expires: q.Until,
	}, nil
}

// Claim takes the single permit to run exactly the approved call.
func (s *seat) Claim(ctx context.Context, ref, key string, v hold.Verdict) error {
	err := s.u.settle(ctx, ref, func(q *asked) error {
		switch {
		case q.State != hold.Approved:
			return &hold.ClaimError{State: q.State, Detail: "the user has not approved the call"}
		case q.Binding == "" || q.Binding != v.Binding:
			return &hold.ClaimError{Detail: "this is not the call that was approved"}
		case q.Claimed != "" && q.Claimed != key:
			return &hold.ClaimError{Detail: "the one run of this approval was taken before"}
		}

		q.Claimed = key

		return nil
	})
	if errors.Is(err, hold.ErrNoRequest) {
		return &hold.ClaimError{Detail: "the user was not asked about this call", Err: err}
	}

	return err
}

// Cancel withdraws an open request.
func (s *seat) Cancel(ctx context.Context, ref, reason string) error {
	return s.u.settle(ctx, ref, func(q *asked) error {
		if q.State == hold.Pending {
			q.State, q.Reason = hold.Cancelled, reason
		}

		return nil
	})
}
