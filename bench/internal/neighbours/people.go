package neighbours

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"time"

	"github.com/assent-dev/assent/internal/wait"
)

// begin begins a sign-in, and returns the URL of the provider and the cookie.
func begin(ctx context.Context, c *http.Client, base, tenant string) (to *url.URL, cookie string, err error) {
	resp, err := get(ctx, c, base+"/auth/start/"+tenant, "")
	if err != nil {
		return nil, "", err
	}
	if resp.status != http.StatusFound {
		return nil, "", fmt.Errorf("begin a sign-in: status %d", resp.status)
	}
	if to, err = url.Parse(resp.header.Get("Location")); err != nil {
		return nil, "", err
	}
	return to, resp.cookie("-flow"), nil
}

// page is an answer that was read.
type page struct {
	status int
	header http.Header
	body   string
}

// cookie returns a cookie that the response sets.
func (p page) cookie(part string) string {
	for _, line := range p.header.Values("Set-Cookie") {
		pair, _, _ := strings.Cut(line, ";")
		if strings.HasPrefix(pair, "__Host-assent"+part+"=") && !strings.HasSuffix(pair, "=") {
			return pair
		}
	}

	return ""
}

func get(ctx context.Context, c *http.Client, to, cookie string) (page, error) {
	req, err := http.NewRequestWithContext(ctx, "GET", to, nil)
	if err != nil {
		return page{}, err
	}
	return read(c, req, cookie)
}

func read(c *http.Client, req *http.Request, cookie string) (page, error) {
	req.Header.Set("Sec-Fetch-Mode", "navigate")
	if cookie != "" {
		req.Header.Set("Cookie", cookie)
	}
	resp, err := c.Do(req)
	if err != nil {
		return page{}, err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	return page{resp.StatusCode, resp.Header, string(text)}, err
}

// signIn signs a person in at the provider, including the time to type a password, and returns the
// session.
func (w *world) signIn(
	ctx context.Context, c *http.Client, tenant string, typing time.Duration,
) (session string, err error) {
	to, flow, err := begin(ctx, c, w.base, tenant)
	if err != nil {
		return "", err
	}
	_ = wait.Pause(ctx, typing)
	back, err := get(ctx, c, to.String(), "")
	if err != nil {
		return "", err
	}
	at, err := url.Parse(back.header.Get("Location"))
	if err != nil {
		return "", err
	}
	in, err := get(ctx, c, w.base+at.RequestURI(), flow)
	if err != nil {
		return "", err
	}
	if session = in.cookie(""); session == "" {
		return "", fmt.Errorf("signed in with status %d: %.300s", in.status, in.body)
	}
	return session, nil
}

var hidden = regexp.MustCompile(`<input type="hidden" name="([^"]*)" value="([^"]*)">`)

// armed is how long a page must have been open before its form is accepted.
const armed = 800 * time.Millisecond

// approve opens the page of a request and approves it, as a person would.
func (w *world) approve(ctx context.Context, c *http.Client, session, id string) error {
	at := w.base + "/requests/" + id
	p, err := get(ctx, c, at, session)
	if err != nil {
		return err
	}
	_, form, found := strings.Cut(p.body, `id="approve-form"`)
	form, _, _ = strings.Cut(form, "</form>")
	if !found {
		return fmt.Errorf("the page offers no approval: status %d", p.status)
	}
	fields := url.Values{}
	for _, m := range hidden.FindAllStringSubmatch(form, -1) {
		fields.Set(m[1], m[2])
	}
	_ = wait.Pause(ctx, armed)
	req, err := http.NewRequestWithContext(ctx, "POST", at+"/vote", strings.NewReader(fields.Encode()))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	voted, err := read(c, req, session)
	if err != nil {
		return err
	}
	if voted.status != http.StatusSeeOther {
		return fmt.Errorf("voted with status %d", voted.status)
	}
	if p, err = get(ctx, c, at, session); err == nil && !strings.Contains(p.body, "Approved, may run once") {
		err = errors.New("it is not approved")
	}
	return err
}
