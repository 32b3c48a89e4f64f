package server

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/diag"
	"github.com/assent-dev/assent/resolve"
	"github.com/assent-dev/assent/server/openapi"
	"github.com/assent-dev/assent/value"
)

// bodySize limits the body of an operation, in bytes. Zero means that the operation takes
// no body.
type bodySize int64

// Limits of bodies. Arguments alone may have 2 MiB (value.Limits); the rest of the body may
// have as much as any other body.
const (
	noBody    bodySize = 0
	smallBody bodySize = 1 << 20
	callBody  bodySize = 3 << 20
)

// timed is a body that must be read by a deadline. Its end clears the deadline; otherwise
// an expired deadline would look like a client that disconnected. Without an end the
// deadline stays, because net/http still reads what a handler left unread.
type timed struct {
	io.ReadCloser
	control *http.ResponseController
}

// limitBody sets a deadline for the client to send its body, whichever code reads it.
func limitBody(w http.ResponseWriter, r *http.Request, within time.Duration) {
	if r.ContentLength == 0 {
		return
	}
	body := &timed{r.Body, http.NewResponseController(w)}
	_ = body.control.SetReadDeadline(time.Now().Add(within)) // test recorders have no deadlines
	r.Body = body
}

// Read clears the deadline at the end of the body.
func (b *timed) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err == io.EOF {
		_ = b.control.SetReadDeadline(time.Time{})
	}
	return n, err
}

// readBody reads a body and checks its type. It returns empty text if there is no body.
func readBody(w http.ResponseWriter, r *http.Request, limit bodySize) ([]byte, error) {
	if r.Body == nil || r.ContentLength == 0 {
		return nil, nil
	}
	if limit == noBody {
		return nil, refuseAny(r)
	}
	if r.ContentLength > int64(limit) {
		return nil, tooLarge(limit)
	}
	if err := checkType(r); err != nil {
		return nil, err
	}
	text, err := readAll(http.MaxBytesReader(w, r.Body, int64(limit)), r.ContentLength)
	var over *http.MaxBytesError
	var refused *problem
	switch {
	case errors.As(err, &over):
		return nil, tooLarge(limit)
	case errors.As(err, &refused):
		return nil, refused
	case err != nil:
		return nil, fail(openapi.CodeBadRequest, "the body ends before its time")
	}

	return text, nil
}

// readAll is io.ReadAll with a single buffer if the length is known.
func readAll(r io.Reader, length int64) ([]byte, error) {
	var b bytes.Buffer
	b.Grow(int(max(length, 0)) + bytes.MinRead)
	_, err := b.ReadFrom(r)
	return b.Bytes(), err
}

// refuseAny returns an error if there is a body. If the length is unknown, it reads one
// byte to find out.
func refuseAny(r *http.Request) error {
	if _, err := io.ReadFull(r.Body, make([]byte, 1)); err == io.EOF {
		return nil
	}
	return fail(openapi.CodeBadRequest, "expected no body")
}

func tooLarge(limit bodySize) error {
	return fail(openapi.CodeTooLarge, fmt.Sprintf("expected at most %d bytes", limit))
}

func checkType(r *http.Request) error {
	media, params, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	charset, stated := params["charset"]
	switch {
	case err != nil || media != "application/json":
		return fail(openapi.CodeUnsupportedMediaType, "expected the header Content-Type: application/json")
	case stated && !strings.EqualFold(charset, "utf-8"):
		return fail(openapi.CodeUnsupportedMediaType, "expected UTF-8")
	case r.Header.Get("Content-Encoding") != "":
		return fail(openapi.CodeUnsupportedMediaType, "expected a body that is not compressed")
	}

	return nil
}

// fields reads the members of a body one by one. It keeps the first error; after that every
// member reads as absent.
type fields struct {
	raw    map[string][]byte
	prefix string // of names in errors
	err    error
}

// object splits a body into its members. The body must be a single object that has only
// these names, each at most once.
func object(body []byte, prefix string, known ...string) *fields {
	f := &fields{raw: map[string][]byte{}, prefix: prefix}
	for m, err := range value.SplitObject(body) {
		_, twice := f.raw[m.Key]
		switch {
		case err != nil:
			f.err = fail(openapi.CodeBadRequest, "the body: "+err.Error())
		case twice:
			f.refuse(m.Key, "the field stands twice")
		case !slices.Contains(known, m.Key):
			f.refuse(m.Key, unknown(m.Key, known))
		}

		if f.err != nil {
			return f
		}
		f.raw[m.Key] = m.Raw
	}

	return f
}

func unknown(name string, known []string) string {
	if near := diag.Nearest(name, known); near != "" {
		return fmt.Sprintf("unknown field, did you mean %q", near)
	}
	return "unknown field, expected one of " + strings.Join(known, ", ")
}

func (f *fields) refuse(name, why string) {
	if f.err == nil {
		f.err = bad(f.prefix+name, why)
	}
}

func (f *fields) has(name string) bool {
	_, ok := f.raw[name]
	return ok
}

// must records an error if one of these members is missing.
func (f *fields) must(names ...string) *fields {
	for _, name := range names {
		if !f.has(name) {
			f.refuse(name, "expected this field")
		}
	}
	return f
}

// mostListed is the maximal number of JSON values of a member that is read as a tree: the
// list, and 10,000 in it. It does not apply to calls.
const mostListed = 10_001

// value parses a member strictly. It returns Absent if the member is absent.
func (f *fields) value(name string, want value.Kind, words string) value.Value {
	raw, ok := f.raw[name]
	if !ok || f.err != nil {
		return value.Value{}
	}
	v, err := value.Parse(raw, value.Limits{MaxValues: mostListed})
	switch {
	case err != nil:
		f.refuse(name, err.Error())
	case v.Kind != want:
		f.refuse(name, "expected "+words)
	default:
		return v
	}

	return value.Value{}
}

func (f *fields) text(name string) string { return f.value(name, value.String, "a string").Text }

func (f *fields) flag(name string) bool { return f.value(name, value.Bool, "true or false").Bool }

func (f *fields) number(name string) int {
	v := f.value(name, value.Number, "a whole number")
	if v.Kind == value.Absent {
		return 0
	}
	n, err := wholeNumber(v.Num)
	if err != nil {
		f.refuse(name, err.Error())
	}
	return n
}

// count reads a number of at least 1. Zero would look like an absent number, which is no
// limit.
func (f *fields) count(name string) int {
	n := f.number(name)
	if f.has(name) && n == 0 {
		f.refuse(name, "expected a whole number from 1")
	}
	return n
}

const mostCount = 1 << 31

func wholeNumber(n value.Num) (int, error) {
	if !n.IsInt() || n.Cmp(value.IntNum(0)) < 0 || n.Cmp(value.IntNum(mostCount)) > 0 {
		return 0, errors.New("expected a whole number from 0")
	}
	var out int
	_, err := fmt.Sscanf(n.Canonical(), "%d", &out)
	return out, err
}

func (f *fields) texts(name string) []string {
	var out []string
	for _, item := range f.value(name, value.Array, "a list of strings").Items {
		if item.Kind != value.String || item.Text == "" {
			f.refuse(name, "expected a list of strings that are not empty")
			return nil
		}
		out = append(out, item.Text)
	}

	return out
}

// duration reads a positive duration. It returns 0 if the member is absent.
func (f *fields) duration(name string) time.Duration {
	text := f.value(name, value.String, "a string")
	if text.Kind == value.Absent {
		return 0
	}
	d, ok := parseDuration(text.Text)
	switch {
	case !ok:
		f.refuse(name, "expected a duration such as 8h")
		return 0
	case d == 0 && f.err == nil:
		f.err = &approval.InputError{Field: f.prefix + name, Expected: "more than no time"}
	}

	return d
}

// call reads a call and keeps the bytes of its arguments unchanged. It also reads arguments
// that are always denied later.
func (f *fields) call(name string) *resolve.Call {
	raw, ok := f.raw[name]
	if !ok || f.err != nil {
		return nil
	}
	call, err := parseCall(raw, f.prefix+name)
	if err != nil {
		f.err = err
	}
	return call
}

func parseCall(raw []byte, at string) (*resolve.Call, error) {
	call, err := resolve.ParseCall(raw, value.Limits{})
	if err == nil {
		return call, nil
	}
	var broken *resolve.CallError
	if errors.As(err, &broken) && broken.Field != "" {
		at = strings.TrimPrefix(at+"."+broken.Field, ".")
		err = broken.Err
	}
	if at == "" {
		at = "the call"
	}
	return nil, fail(openapi.CodeBadRequest, at+": "+err.Error()).in(at)
}
