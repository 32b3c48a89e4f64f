package answer

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/client"
	"github.com/assent-dev/assent/cmd/internal/remote"
	"github.com/assent-dev/assent/cmd/internal/term"
	"github.com/assent-dev/assent/server/openapi"
)

// grantFlags are the flags that offer a standing approval together with the vote.
type grantFlags struct {
	age     string
	uses    int
	session bool
	atMost  []string
	atLeast []string
	bounds  []string // as approval.ParseBound takes them
}

// offer returns the standing approval that the flags offer, or nil.
func (g grantFlags) offer() (*openapi.GrantOffer, error) {
	if g.age == "" && g.uses == 0 && !g.session {
		if len(g.atMost)+len(g.atLeast)+len(g.bounds) > 0 {
			return nil, errors.New(
				"--grant, --at-most and --at-least bound a grant: give --grant-age, --grant-uses or --grant-session too",
			)
		}
		return nil, nil
	}

	offer := &openapi.GrantOffer{MaxUses: g.uses, Session: g.session}
	if g.uses < 0 {
		return nil, fmt.Errorf("--grant-uses: %d is no number of uses", g.uses)
	}
	if g.age != "" {
		age, err := term.ParseAge(g.age)
		if err != nil {
			return nil, fmt.Errorf("--grant-age: %w", err)
		}
		offer.MaxAge = age.String()
	}

	for _, path := range g.atMost {
		offer.Bounds = append(offer.Bounds, approval.Bound{Path: path, Kind: approval.AtMost})
	}
	for _, path := range g.atLeast {
		offer.Bounds = append(offer.Bounds, approval.Bound{Path: path, Kind: approval.AtLeast})
	}
	for _, text := range g.bounds {
		bound, err := approval.ParseBound(text)
		if err != nil {
			return nil, fmt.Errorf("--grant %q: %w", text, err)
		}
		offer.Bounds = append(offer.Bounds, bound)
	}
	return offer, nil
}

func (a commands) approve(ctx context.Context, f answerFlags, id string) error {
	offer, err := f.grant.offer()
	if err != nil {
		return err
	}
	if approval.QuestionID(id) { // whatever else is missing, approve is not the way
		return notACall(id)
	}
	if err := a.attended(f, "approve"); err != nil {
		return err
	}
	server, r, err := a.lookAtCall(ctx, f.Connection, id, f.binding)
	if err != nil {
		return err
	}
	if offer != nil && r.Grants.Forbid {
		return term.No("policy forbids standing approvals of this call: approve it without the --grant flags")
	}
	shown := a.shownOn(f.AsJSON)
	if err := a.showWhole(shown, r, f.all); err != nil {
		return err
	}
	printOffered(shown, offer, r)
	if !f.yes {
		printReminder(shown, r)
		if err := a.confirm(shown, "approve "+r.ID, r.ID, r.Binding()); err != nil {
			return err
		}
	}

	if err := shown.Done(); err != nil { // what was not printed was not shown
		return err
	}
	body := openapi.VoteBody{
		Verdict:    approval.Approve,
		Binding:    r.Binding(),
		Reason:     f.reason,
		ShownFully: true,
	}
	if offer != nil {
		body.Grant = *offer
	}
	return a.vote(ctx, server, r, body, f.AsJSON)
}

// errBinding is returned if no one is asked for confirmation and --binding is missing.
var errBinding = errors.New(
	"--yes needs --binding: the prefix of the binding that you looked at (assent show prints it)",
)

// attended returns an error unless a person can be asked for confirmation, or the flags name the
// binding of the call that the person has seen.
func (a commands) attended(f answerFlags, verb string) error {
	switch {
	case f.yes && f.binding == "":
		return errBinding
	case !f.yes && !a.person(f.AsJSON):
		return errors.New(
			"there is no terminal to ask at: " + verb + " with --yes --binding PREFIX what you looked at before " +
				"(assent show)",
		)
	}

	return nil
}

// person reports whether a person sees the output and can answer.
func (a commands) person(asJSON bool) bool {
	return a.InTerminal && (a.OutTerminal || asJSON && a.ErrTerminal)
}

// shownOn returns the printer for showing a request before it is answered. It uses the error stream
// if standard output is for a JSON document.
func (a commands) shownOn(asJSON bool) *term.Printer {
	p := a.Printer()
	if asJSON {
		p.W, p.Color = a.Err, false
	}
	return p
}

// showWhole prints the request, and returns an error if it could not be shown in full.
func (a commands) showWhole(p *term.Printer, r *approval.Request, all bool) error {
	s := viewOn(p, all)
	s.request(r)
	switch args := r.Current().Call.Args; {
	case p.Err != nil:
		return p.Done()
	case len(args) > maxApprovable:
		return term.No(
			"the arguments have %d bytes: more than %d can't be approved, only denied",
			len(args),
			maxApprovable,
		)
	case len(r.Unapprovable()) > 0:
		return term.No(
			"a policy forbids approving this call while it hides values of it (%s): deny it",
			term.ScrubLine(strings.Join(r.Hidden(), ", ")),
		)
	case s.cut:
		return term.No("the call was not shown in full, so it can't be approved: give --all and read it")
	}

	return nil
}

// sameBinding checks that a binding begins with the given prefix, which identifies the call that
// the person has seen.
func sameBinding(prefix, binding string) error {
	const least = 12
	const scheme = "sha256:"
	prefix = strings.TrimPrefix(prefix, scheme)
	switch {
	case prefix == "":
		return nil
	case len(prefix) < least:
		return fmt.Errorf("--binding: expected at least %d hexadecimal digits", least)
	case !strings.HasPrefix(strings.TrimPrefix(binding, scheme), prefix):
		return term.No(
			"this is another call than the one you looked at: its binding is %s",
			term.ScrubLine(binding),
		)
	}

	return nil
}

// printOffered describes the standing approval that goes with the vote, and the total effect of all
// of its uses.
func printOffered(p *term.Printer, offer *openapi.GrantOffer, r *approval.Request) {
	if offer == nil {
		return
	}
	p.Printf(
		"\n%s: this also lets %s run %s with these arguments without asking",
		term.Yellow.Of("standing approval"),
		r.Agent.ID,
		r.Current().Call.Target(),
	)
	p.Printf(", for %s", cmp.Or(offer.MaxAge, "as long as the server's default, 1h unless it says otherwise"))
	uses := max(offer.MaxUses, 1)
	switch {
	case offer.MaxUses == 0 && offer.MaxAge != "":
		uses = cmp.Or(r.Grants.MaxUses, approval.MostUses)
		p.Printf(", as often as it is called in that time, at most %d times", uses)
	case offer.MaxUses == 0:
		p.Printf(", as often as the server's default, once unless it says otherwise")
	case offer.MaxUses == 1:
		p.Printf(", once")
	default:
		p.Printf(", at most %d times", offer.MaxUses)
	}

	if offer.Session {
		p.Printf(", only in session %s", r.Requester.Session)
	}
	p.Printf(". Any other argument asks again.\n")
	for _, line := range approval.SaysAll(offer.Bounds, r.Current().Ignored) {
		p.Printf("  %s\n", line)
	}
	for _, e := range r.Examples(offer.Bounds) {
		p.Printf("    %s %s: %s\n", e.Path, coveredWords(e.Covered), e.Text)
	}
	for _, e := range r.Exposures() {
		p.Printf("  all uses together, %s: at most %s\n", e.Path, e.Words(uses))
	}
}

func coveredWords(covered bool) string {
	if covered {
		return "covered"
	}
	return "not covered"
}

// printReminder repeats in one line what is being approved, directly before the confirmation: the
// output above may have scrolled off the screen.
func printReminder(p *term.Printer, r *approval.Request) {
	args, _ := approval.Redact(string(r.Current().Call.Args), r.Arguments().Redaction())
	p.Printf("\n%s %s\n", term.Bold.Of(r.Current().Call.Target()), term.Shorten(args, 160))
}

// confirm asks for the last characters of the id, so that keys pressed for another purpose never
// decide (threat 13).
func (a commands) confirm(p *term.Printer, what, id, binding string) error {
	name := lastOf(id)
	p.Printf(
		"\nTo %s (binding %s…) type %s, anything else stops: ",
		what,
		shortBinding(binding),
		term.Bold.Of(name),
	)
	line, err := a.readAnswer(p)
	if err != nil {
		return err
	}
	if line != name {
		return term.No("stopped: nothing was done")
	}
	return nil
}

// readAnswer reads one line after the output is complete. It returns an empty string at the end of
// the input.
func (a commands) readAnswer(p *term.Printer) (string, error) {
	line, err := a.readLine(p)
	if errors.Is(err, io.EOF) {
		return "", nil
	}

	return line, err
}

// longestLine is the maximum length of one line in bytes, as in terminals.
const longestLine = 4096

// readLine reads one line after the output is complete. It reads byte by byte, because later input
// belongs to the next question. The error is io.EOF if there is no more input.
func (a commands) readLine(p *term.Printer) (string, error) {
	if err := p.Done(); err != nil {
		return "", err
	}
	var line []byte
	one := make([]byte, 1)
	for !bytes.HasSuffix(line, []byte("\n")) {
		switch _, err := io.ReadFull(a.In, one); {
		case errors.Is(err, io.EOF) && len(line) > 0:
			return strings.TrimSpace(string(line)), nil
		case errors.Is(err, io.EOF):
			return "", io.EOF
		case err != nil:
			return "", fmt.Errorf("read the answer: %w", err)
		case len(line) == longestLine:
			return "", fmt.Errorf("a line has at most %d bytes: nothing was done", longestLine)
		}

		line = append(line, one[0])
	}

	return strings.TrimSpace(string(line)), nil
}

func lastOf(id string) string { return id[max(0, len(id)-6):] }

func shortBinding(binding string) string {
	digits := strings.TrimPrefix(binding, "sha256:")
	return digits[:min(12, len(digits))]
}

// answersOn returns the channel of an answer, for the record.
func (a commands) answersOn() string { return cmp.Or(a.channel, "cli") }

// vote sends the answer and prints the result.
func (a commands) vote(
	ctx context.Context, server *client.Client, r *approval.Request, body openapi.VoteBody, asJSON bool,
) error {
	body.Channel = a.answersOn()
	voted, err := server.Vote(ctx, r.ID, r.Version, body)
	if err != nil {
		return remote.Explain(err)
	}
	if err := term.Print(a.Streams, asJSON, voted, printVoted); err != nil {
		return err
	}
	return said(voted)
}

// said returns an error with the exit code for "no" if an answer had no effect.
func said(v *approval.Voted) error {
	if !effective(v.Outcome) {
		return term.Exit(term.ExitNo)
	}
	return nil
}

// effective reports whether an answer had the intended effect, or had been given before.
func effective(o approval.VoteOutcome) bool {
	return slices.Contains(
		[]approval.VoteOutcome{
			approval.VoteCounted,
			approval.VoteApproved,
			approval.VoteDenied,
			approval.VoteDuplicate,
			approval.VoteRevoked,
			approval.VoteAnswered,
		},
		o,
	)
}

func printVoted(p *term.Printer, v *approval.Voted) {
	words := map[approval.VoteOutcome]string{
		approval.VoteCounted:     "counted; more people are needed",
		approval.VoteApproved:    "approved: it may run now, once",
		approval.VoteDenied:      "denied: it will not run",
		approval.VoteDuplicate:   "you had said so before; nothing changed",
		approval.VoteLate:        "too late: the request had ended; your answer is on record",
		approval.VoteConflicting: "too late: it had ended the other way; your answer is on record",
		approval.VoteRevoked:     "denied in time: the approval is void, it will not run",
		approval.VoteNotEligible: "not counted; the attempt is on record",
	}
	look := term.Red
	if effective(v.Outcome) {
		look = term.Green
	}
	if v.Outcome == approval.VoteAnswered && v.Request.Question != nil && v.Request.Chosen != nil {
		p.Printf(
			"%s: %s%s\n",
			v.Request.ID,
			look.Of("answered: the tool is told "),
			choiceOf(v.Request, *v.Request.Chosen),
		)
		return
	}

	if v.Outcome == approval.VoteAnswered && v.Request.Question != nil {
		p.Printf("%s: %s\n", v.Request.ID, look.Of(endingOf(v.Request)))
		return
	}

	p.Printf("%s: %s\n", v.Request.ID, look.Of(cmp.Or(words[v.Outcome], string(v.Outcome))))
	if v.Detail != "" {
		p.Printf("  %s\n", v.Detail)
	}
	if v.Grant != nil {
		p.Printf(
			"  standing approval %s, %s, %d uses\n",
			v.Grant.ID,
			"until "+term.Stamp(v.Grant.Expires),
			v.Grant.MaxUses,
		)
	}
}

// refuse sends an answer after which the call does not run. It doesn't need to show the request.
func (a commands) refuse(ctx context.Context, f answerFlags, id string, body openapi.VoteBody) error {
	server, r, err := a.lookAtCall(ctx, f.Connection, id, f.binding)
	if err != nil {
		return err
	}
	body.Binding = r.Binding()
	return a.vote(ctx, server, r, body, f.AsJSON)
}

func (a commands) cancel(ctx context.Context, f answerFlags, id string) error {
	return remote.Ask(a.Caller, f.Connection, func(s *client.Client) (*approval.Request, error) {
		return s.Cancel(ctx, id, f.reason)
	}, func(p *term.Printer, r *approval.Request) { p.Printf("%s: %s\n", r.ID, r.State) })
}

// look fetches the request for an answer, and compares it with the binding given by the person.
func (a commands) look(
	ctx context.Context, c remote.Connection, id, binding string,
) (*client.Client, *approval.Request, error) {
	server, err := a.Dial(c)
	if err != nil {
		return nil, nil, err
	}
	r, err := server.Request(ctx, id)
	if err != nil {
		return nil, nil, remote.Explain(err)
	}
	return server, r, sameBinding(binding, r.Binding())
}

// lookAtCall is look for answers to calls. It returns an error for a question.
func (a commands) lookAtCall(
	ctx context.Context, c remote.Connection, id, binding string,
) (*client.Client, *approval.Request, error) {
	server, r, err := a.look(ctx, c, id, binding)
	if err != nil {
		return nil, nil, err
	}
	return server, r, isQuestion(r)
}
