package auth

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/alexedwards/scs/v2"

	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/store"
)

// Buckets of store.Values. A session is written once, at the sign-in, and never again, so a
// request that is still running during a sign-out can't bring it back. The time of its last
// use is stored separately.
const (
	bucketSession = "session"
	bucketSeen    = "session-seen"
	bucketLink    = "signin-link"
)

// Buckets returns the buckets of sessions and of one-time links. The sessions themselves
// come first.
func Buckets() []string { return []string{bucketSession, bucketSeen, bucketLink} }

// newSessions sets no idle timeout: with one, scs would write every session back with every
// request.
func newSessions(s scs.Store, cookie string, secure bool) *scs.SessionManager {
	return &scs.SessionManager{ // scs.New would start a store of its own, with a goroutine
		Lifetime:         Absolute,
		Store:            s,
		Codec:            codec{},
		HashTokenInStore: true,
		Cookie: scs.SessionCookie{
			Name:     cookie,
			Path:     "/",
			HttpOnly: true,
			SameSite: http.SameSiteLaxMode,
			Secure:   secure,
		},
	}
}

// cookieName returns the name of a cookie. Browsers accept a __Host- cookie only from the
// host itself, over https, for every path. Over http, which is for dev mode, the name
// contains the port, because all ports of a host share their cookies.
func (a *Auth) cookieName(part string) string {
	if a.base.Scheme == "https" {
		return "__Host-assent" + part
	}
	return "assent" + part + "-" + cmp.Or(a.base.Port(), "80")
}

// signedIn is the content of a session.
type signedIn struct {
	tenant, person, method, provider string
	at                               time.Time
}

// The keys of a session.
const (
	keyTenant   = "tenant"
	keyPerson   = "person"
	keyMethod   = "method"
	keyProvider = "provider"
	keyAt       = "at"
)

func (a *Auth) token(r *http.Request) string {
	c, err := r.Cookie(a.sessions.Cookie.Name)
	if err != nil {
		return ""
	}
	return c.Value
}

// session reads the session of a request. It returns errNobody if there is none.
func (a *Auth) session(r *http.Request) (signedIn, error) {
	token := a.token(r)
	if token == "" {
		return signedIn{}, errNobody
	}
	ctx, err := a.sessions.Load(r.Context(), token)
	if err != nil {
		return signedIn{}, fmt.Errorf("read the session: %w", err)
	}
	get := func(k string) string { return a.sessions.GetString(ctx, k) }
	s := signedIn{
		tenant:   get(keyTenant),
		person:   get(keyPerson),
		method:   get(keyMethod),
		provider: get(keyProvider),
	}
	if s.person == "" {
		return signedIn{}, errNobody
	}
	s.at, err = time.Parse(time.RFC3339, get(keyAt))
	return s, err
}

// begin signs a person in. It records that first, and then uses a new token, whatever token
// the browser sent (session fixation).
func (a *Auth) begin(w http.ResponseWriter, r *http.Request, s signedIn) error {
	facts := map[string]any{"method": s.method}
	if s.provider != "" {
		facts["provider"] = s.provider
	}
	if err := a.cfg.Record(r.Context(), s.tenant, "signed_in", s.person, s.person, facts); err != nil {
		return fmt.Errorf("record the sign-in: %w", err)
	}
	ctx, err := a.sessions.Load(r.Context(), a.token(r))
	if err == nil {
		err = a.sessions.RenewToken(ctx)
	}
	if err == nil {
		err = a.sessions.Clear(ctx)
	}
	if err != nil {
		return fmt.Errorf("begin the session: %w", err)
	}
	now := a.cfg.Now().UTC()
	for k, v := range map[string]string{
		keyTenant:   s.tenant,
		keyPerson:   s.person,
		keyMethod:   s.method,
		keyProvider: s.provider,
		keyAt:       now.Format(time.RFC3339),
	} {
		a.sessions.Put(ctx, k, v)
	}

	a.sessions.SetDeadline(ctx, now.Add(Absolute)) // by the clock of the configuration
	token, expires, err := a.sessions.Commit(ctx)
	if err != nil {
		return fmt.Errorf("begin the session: %w", err)
	}
	a.sessions.WriteSessionCookie(ctx, w, token, expires)
	return nil
}

// signOut ends this browser's session, or with everywhere=yes all sessions of the person.
func (a *Auth) signOut(w http.ResponseWriter, r *http.Request) {
	s, err := a.session(r)
	if err == nil && r.PostFormValue("everywhere") == "yes" {
		err = a.store.endAll(r.Context(), s)
	}
	if err == nil {
		err = a.end(w, r)
	}
	if err != nil && !errors.Is(err, errNobody) {
		a.cfg.Log.ErrorContext(r.Context(), "sign-out failed", "error", err)
		refuse(
			w,
			r,
			http.StatusServiceUnavailable,
			message{
				Title: "Not signed out",
				Text:  "assent can't reach its store right now. You are still signed in; try again in a moment.",
			},
		)
		return
	}

	to := "/auth/signed-out"
	if s.provider != "" {
		to += "?from=" + s.provider
	}
	http.Redirect(w, r, to, http.StatusSeeOther)
}

func (a *Auth) end(w http.ResponseWriter, r *http.Request) error {
	ctx, err := a.sessions.Load(r.Context(), a.token(r))
	if err == nil {
		err = a.sessions.Destroy(ctx)
	}
	if err == nil {
		a.sessions.WriteSessionCookie(ctx, w, "", time.Time{})
	}
	return err
}

// sessionStore keeps sessions in store.Values, by the hash of their tokens.
type sessionStore struct {
	values store.Values
	now    func() time.Time
}

// FindCtx returns a session that has not ended and was used recently, and notes this use.
func (s *sessionStore) FindCtx(ctx context.Context, token string) ([]byte, bool, error) {
	now := s.now()
	b, err := s.values.Value(ctx, bucketSession, token, now)
	if errors.Is(err, approval.ErrNotFound) {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, err
	}
	seen, err := s.values.Value(ctx, bucketSeen, token, now)
	switch {
	case errors.Is(err, approval.ErrNotFound):
		return nil, false, s.DeleteCtx(ctx, token)
	case err != nil:
		return nil, false, err
	}

	// Noting every use would cost more than the accuracy of an eighth of the idle time.
	if last, err := time.Parse(time.RFC3339, string(seen)); err != nil || now.Sub(last) > Idle/8 {
		return b, true, s.see(ctx, token, now)
	}
	return b, true, nil
}

func (s *sessionStore) see(ctx context.Context, token string, now time.Time) error {
	return s.values.SetValue(ctx, bucketSeen, token, []byte(now.UTC().Format(time.RFC3339)), now.Add(Idle))
}

// CommitCtx writes a session.
func (s *sessionStore) CommitCtx(ctx context.Context, token string, b []byte, expires time.Time) error {
	if err := s.see(ctx, token, s.now()); err != nil {
		return err
	}
	return s.values.SetValue(ctx, bucketSession, token, b, expires)
}

// DeleteCtx ends a session.
func (s *sessionStore) DeleteCtx(ctx context.Context, token string) error {
	for _, bucket := range []string{bucketSession, bucketSeen} {
		if err := s.values.DeleteValue(ctx, bucket, token); err != nil && !errors.Is(err, approval.ErrNotFound) {
			return err
		}
	}
	return nil
}

// endAll ends every session of a person.
func (s *sessionStore) endAll(ctx context.Context, who signedIn) error {
	all, err := s.values.ListValues(ctx, bucketSession, s.now())
	if err != nil {
		return err
	}
	for token, b := range all {
		_, values, err := codec{}.Decode(b)
		if err == nil && values[keyTenant] == who.tenant && values[keyPerson] == who.person {
			err = s.DeleteCtx(ctx, token)
		}
		if err != nil {
			return err
		}
	}

	return nil
}

// Find, Commit and Delete without a context complete scs.Store. scs calls the others.
func (s *sessionStore) Find(token string) ([]byte, bool, error) {
	return s.FindCtx(context.Background(), token)
}

// Commit writes a session.
func (s *sessionStore) Commit(token string, b []byte, expires time.Time) error {
	return s.CommitCtx(context.Background(), token, b, expires)
}

// Delete ends a session.
func (s *sessionStore) Delete(token string) error { return s.DeleteCtx(context.Background(), token) }

// codec encodes sessions as JSON.
type codec struct{}

type stored struct {
	Deadline time.Time      `json:"deadline"`
	Values   map[string]any `json:"values"`
}

// Encode writes a session.
func (codec) Encode(deadline time.Time, values map[string]any) ([]byte, error) {
	return json.Marshal(stored{deadline, values})
}

// Decode reads what Encode wrote.
func (codec) Decode(b []byte) (time.Time, map[string]any, error) {
	s := stored{Values: map[string]any{}}
	err := json.Unmarshal(b, &s)
	return s.Deadline, s.Values, err
}
