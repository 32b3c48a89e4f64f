package inbox

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/internal/safetext"
	"github.com/assent-dev/assent/server/quota"
)

// visit is one HTTP request of a person for a page.
type visit struct {
	*site
	w      http.ResponseWriter
	r      *http.Request
	Tenant string
	Person approval.Person
	Dev    bool
	now    time.Time
	reads  *approval.Reader           // nil until it is needed
	known  map[string]approval.Person // people that the directory returned during this visit
	draws  *budget                    // remaining budget for drawing the page
	looks  *budget                    // remaining budget for inspecting texts for hints
	turn   *quota.Hold                // held while the page is rendered
	memory *quota.Hold                // held until the page is sent
}

// maxForm is the largest size of a form: edited arguments of the largest size that can be approved,
// with every character escaped.
const maxForm = 4 << 20

// of returns the handler of a page in a group such as queuePages.
func of[Pages ~struct{ *visit }](page func(Pages) error) func(*visit) error {
	return func(v *visit) error { return page(Pages{v}) }
}

func (s *site) visited(page func(*visit) error) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		v := &visit{
			site:  s,
			w:     w,
			r:     r,
			now:   s.Now(),
			known: map[string]approval.Person{},
			draws: newBudget(r.Context(), pagePieces),
			looks: newBudget(r.Context(), listPieces),
		}
		var ok bool
		if v.Tenant, v.Person, v.Dev, ok = s.Who(r); !ok || v.Tenant == "" || v.Person.ID == "" {
			http.Error(w, "Sign in first.", http.StatusUnauthorized)
			return
		}
		if err := v.readForm(); err != nil {
			v.fail(err)
			return
		}
		defer v.giveBack()
		if err := page(v); err != nil {
			v.fail(err)
		}
	}
}

func (v *visit) readForm() error {
	if v.r.Method != http.MethodPost {
		return nil
	}
	v.r.Body = http.MaxBytesReader(v.w, v.r.Body, maxForm)
	if err := v.r.ParseForm(); err != nil {
		return &problem{
			http.StatusBadRequest,
			"The form can't be read",
			"It is damaged, or larger than " + safetext.Count(maxForm) + " bytes.",
		}
	}

	return nil
}

func (v *visit) ctx() context.Context { return v.r.Context() }

// id returns the id of the request, grant or token in the address.
func (v *visit) id() string { return v.r.PathValue("id") }

// reader returns what the visitor may read.
func (v *visit) reader() (by *approval.Reader, err error) {
	if v.reads == nil {
		if by, err = v.Service.Reader(v.ctx(), v.Tenant, v.Person.ID); err != nil {
			return nil, err
		}
		v.reads = by
	}
	return v.reads, nil
}

// stored returns a request if the visitor may read it.
func (v *visit) stored(id string) (*approval.Request, error) {
	by, err := v.reader()
	if err != nil {
		return nil, err
	}
	return v.Service.Read(v.ctx(), v.Tenant, id, by)
}

// list lists the requests that the visitor may read.
func (v *visit) list(f approval.Filter) (approval.Page, error) {
	by, err := v.reader()
	if err != nil {
		return approval.Page{}, err
	}
	return v.Service.List(v.ctx(), v.Tenant, by, f, nil)
}

// mayRead reports for each ledger entry whether the visitor may read it.
func (v *visit) mayRead(about []approval.About) ([]bool, error) {
	by, err := v.reader()
	if err != nil {
		return nil, err
	}
	return v.Service.Entries(v.ctx(), v.Tenant, by, about)
}

// problem is an error with its own page.
type problem struct {
	status int
	title  string
	detail string
}

func (p *problem) Error() string { return p.title + ": " + p.detail }

// fail responds with a page that says what went wrong and what to do. Details for operators are
// logged.
func (v *visit) fail(err error) {
	var p *problem
	var full *quota.FullError
	var input *approval.InputError
	switch {
	case errors.As(err, &p):
	case errors.Is(err, context.Canceled):
		return
	case errors.Is(err, approval.ErrNotFound):
		p = &problem{
			http.StatusNotFound,
			"Not found",
			"There is no such thing here. It may belong to another tenant.",
		}
	case errors.Is(err, errSeal), errors.Is(err, errEarly):
		p = &problem{http.StatusConflict, "Nothing was done", sentence(err.Error())}
	case errors.As(err, &full):
		v.w.Header().Set("Retry-After", "5")
		p = &problem{http.StatusTooManyRequests, "Too much at once", tooMuch(full)}
	case errors.As(err, &input):
		p = &problem{http.StatusUnprocessableEntity, "This page can't be shown", sentence(input.Error())}
	default:
		v.Logger.Error("inbox page failed", "path", v.r.URL.Path, "error", err)
		p = &problem{
			http.StatusServiceUnavailable,
			"This can't be answered now",
			"Nothing was decided, and nothing runs because of this. Try again in a moment; if it stays so, tell " +
				"whoever runs this service.",
		}
	}

	base := v.base(p.title, "")
	base.Data = p.detail
	v.write(p.status, "problem", "layout", base)
}

// page contains the data for the layout.
type page struct {
	Title   string
	Section string
	Tenant  string
	Person  string
	Dev     bool
	Admin   bool
	SignOut string
	Calls   bool // the page of calls exists
	Freezes []approval.Freeze
	Said    *said
	Token   string // seal of the forms that are not about a request
	ArmMS   int64
	Now     time.Time
	Data    any
}

func (v *visit) base(title, section string) page {
	return page{
		Title:   title,
		Section: section,
		Tenant:  v.Tenant,
		Person:  cmp.Or(v.Person.Name, v.Person.ID),
		Dev:     v.Dev,
		Admin:   v.admin(),
		SignOut: v.SignOut,
		Calls:   v.Calls != nil,
		Token: v.seal(toManage, seen{
			Tenant: v.Tenant,
			Person: v.Person.ID,
			At:     v.now.UnixMilli(),
		}),
		ArmMS: v.Arm.Milliseconds(),
		Now:   v.now,
	}
}

// admin reports whether the person is in the group of administrators. An empty group does not
// count, because everyone is in the group "".
func (v *visit) admin() bool {
	group := v.Admins(v.Tenant)
	return group != "" && v.Person.Holds(group)
}

// show responds with a page.
func (v *visit) show(name, title, section string, data any) error {
	p := v.base(title, section)
	p.Data, p.Said = data, v.said()
	var err error
	if p.Freezes, err = v.Store.Freezes(v.ctx(), v.Tenant); err != nil {
		return err
	}
	v.write(http.StatusOK, name, "layout", p)
	return nil
}

// write responds with a complete page, or with an error.
func (v *visit) write(status int, name, block string, data any) {
	if text, ok := v.render(name, block, data); ok {
		v.send(status, text)
	}
}

// render renders a page in memory. It returns false if the visitor has left, or if rendering
// failed; in that case it has sent an error.
func (v *visit) render(name, block string, data any) ([]byte, bool) {
	b := attended{ctx: v.ctx()}
	err := v.pages[name].ExecuteTemplate(&b, block, data)
	if v.ctx().Err() != nil {
		return nil, false
	}
	if err != nil {
		v.Logger.Error("inbox page can't be rendered", "page", name, "error", err)
		http.Error(v.w, "This page can't be shown. Nothing was decided.", http.StatusInternalServerError)
		return nil, false
	}
	return b.Bytes(), true
}

// send sends a page. It gives up the visitor's turn first, because sending takes as long as the
// reader likes.
func (v *visit) send(status int, text []byte) {
	v.turn.Return()
	h := v.w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Cache-Control", "no-store")
	v.w.WriteHeader(status)
	if v.r.Method != http.MethodHead {
		v.w.Write(text)
	}
}

// said returns the message that the previous step left for this page, if it is for this person and
// recent.
func (v *visit) said() *said {
	var m said
	if v.open(toTell, v.r.URL.Query().Get("said"), &m) != nil || m.Person != v.Person.ID {
		return nil
	}
	if m.Request != "" && !strings.HasSuffix(v.r.URL.Path, "/"+m.Request) {
		return nil
	}
	if age := v.now.Sub(time.UnixMilli(m.At)); age < 0 || age > saidAge {
		return nil
	}
	return &m
}

// tell redirects to a page with a message.
func (v *visit) tell(path string, m said) error {
	m.Person, m.At = v.Person.ID, v.now.UnixMilli()
	to := url.URL{Path: path, RawQuery: url.Values{"said": {v.seal(toTell, m)}}.Encode()}
	http.Redirect(v.w, v.r, to.String(), http.StatusSeeOther)
	return nil
}

// posted checks the seal of a form that is not about a request.
func (v *visit) posted() error {
	_, err := v.openSeen(toManage, v.r.PostForm.Get("seen"), v)

	return err
}

func (v recordPages) nowhere() error { return approval.ErrNotFound }

// person looks up a person in the directory, once per name.
func (v *visit) person(name string) (approval.Person, error) {
	if p, ok := v.known[name]; ok || name == "" {
		return p, nil
	}
	p, ok, err := v.Directory.Person(v.ctx(), v.Tenant, name)
	if err != nil {
		return p, err
	}
	if !ok {
		p = approval.Person{}
	}
	v.known[name] = p
	return p, nil
}

// called returns the displayed name of a person.
func (v *visit) called(id string) string {
	p, err := v.person(id)
	if err != nil || p.Name == "" || p.Name == id {
		return id
	}
	return p.Name + " (" + id + ")"
}

// sentence turns an error's text into a sentence.
func sentence(s string) string {
	if s == "" {
		return s
	}
	first, size := utf8.DecodeRuneInString(s)

	return string(unicode.ToUpper(first)) + strings.TrimSuffix(s[size:], ".") + "."
}
