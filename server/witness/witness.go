package witness

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/assent-dev/assent/approval/ledger"
	"github.com/assent-dev/assent/internal/guard"
)

// log is the current state of a log, to be shown.
type log struct {
	origin    string
	size      int64
	note      []byte
	publicKey string
	handovers []handover                                      // changes of the key, oldest first
	prove     func(newer, older int64) ([]ledger.Hash, error) // proof that the newer log begins with the older one
}

// handover is a checkpoint that two keys signed.
type handover struct {
	size     int64
	note     []byte
	from, to string // public keys
}

// signed opens a checkpoint that this server signed, with its current key or an earlier
// one.
func (l *log) signed(note []byte) (c ledger.Checkpoint, err error) {
	if c, err = ledger.OpenCheckpoint(note, l.publicKey); err == nil {
		return c, nil
	}
	for _, h := range l.handovers {
		if c, before := ledger.OpenCheckpoint(note, h.from); before == nil {
			return c, nil
		}
	}
	return c, err
}

// Witness is a place to which checkpoints are shown.
type Witness interface {
	// Show shows a log. It returns a *Contradiction if the witness has another history of
	// it.
	Show(ctx context.Context, l *log) error
}

// Contradiction is a checkpoint that this server signed, and that its log does not
// continue: an older state of the database was restored, or the log was rewritten.
type Contradiction struct {
	Origin string
	Size   int64
	At     time.Time // when it was shown to the witness; zero if unknown
}

// Error describes the witness's checkpoint.
func (c *Contradiction) Error() string {
	return fmt.Sprintf(
		"the witness has a checkpoint of %s with %d entries, signed with our key, that the ledger does not continue",
		c.Origin,
		c.Size,
	)
}

// against compares a log with a checkpoint of a witness. The checkpoint counts only if this
// server signed it, so that a witness can't invent one.
func (l *log) against(older []byte, at time.Time) error {
	c, err := l.signed(older)
	if err != nil {
		return fmt.Errorf("what it has is not a checkpoint that this server signed: %w", err)
	}
	if c.Origin != l.origin {
		return fmt.Errorf("what it has is of the log %s", c.Origin)
	}
	wrong := &Contradiction{Origin: l.origin, Size: c.Size, At: at}
	if c.Size > l.size {
		return wrong
	}
	now, err := l.signed(l.note)
	if err != nil {
		return err
	}
	proof, err := l.prove(now.Size, c.Size)
	if err != nil {
		return err
	}
	if ledger.CheckConsistency(proof, now.Size, now.Root, c.Size, c.Root) != nil {
		return wrong
	}
	return nil
}

// line is a checkpoint in the file of a witness.
type line struct {
	Time       time.Time `json:"time"`
	Log        string    `json:"log"`
	Size       int64     `json:"size"`
	Checkpoint string    `json:"checkpoint"`
}

// file appends lines of JSON to a file.
type file struct {
	path string
	now  func() time.Time

	mu   sync.Mutex
	seen map[string]bool // logs whose last line was compared
}

// File returns a witness that appends each checkpoint to a file, as one line of JSON. The
// file should be on append-only storage.
func File(path string, now func() time.Time) Witness {
	return &file{
		path: path,
		now:  now,
		seen: map[string]bool{},
	}
}

func (f *file) Show(_ context.Context, l *log) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.seen[l.origin] {
		last, err := f.last(l.origin)
		if err == nil && last != nil {
			err = l.against([]byte(last.Checkpoint), last.Time)
		}
		if err != nil {
			return err
		}
		f.seen[l.origin] = true
	}

	text, err := json.Marshal(line{f.now().UTC(), l.origin, l.size, string(l.note)})
	if err != nil {
		return err
	}
	out, err := os.OpenFile(f.path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	_, err = out.Write(append(text, '\n'))
	if err == nil {
		err = out.Sync()
	}
	return errors.Join(err, out.Close())
}

// maxLine is the maximal length of a line, in bytes.
const maxLine = 1 << 20

// last returns the last line of a log in the file. It ignores a line that was cut off by a
// crash.
func (f *file) last(origin string) (*line, error) {
	in, err := os.Open(f.path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer in.Close()
	var last *line
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, maxLine)
	for lines.Scan() {
		var l line
		if json.Unmarshal(lines.Bytes(), &l) == nil && l.Log == origin {
			last = &l
		}
	}

	return last, lines.Err()
}

// Remote configures a witness that is reached over the network.
type Remote struct {
	URL   string
	Token string // bearer token; may be empty
	Guard guard.Guard
}

const (
	remoteTime = 15 * time.Second
	mostAnswer = 1 << 20 // bytes
)

// remote sends to an address.
type remote struct {
	Remote
	client *http.Client
}

func reach(r Remote) (remote, error) {
	if _, err := r.Guard.CheckURL(r.URL); err != nil {
		return remote{}, err
	}
	return remote{r, r.Guard.Client(remoteTime)}, nil
}

// posts is a witness that gets each checkpoint posted to an address.
type posts struct{ remote }

// URL returns a witness to which each checkpoint is posted as a signed note. A 2xx answer
// means that it was accepted.
func URL(r Remote) (Witness, error) {
	at, err := reach(r)
	return &posts{at}, err
}

func (p *posts) Show(ctx context.Context, l *log) error {
	_, err := p.send(ctx, "text/plain; charset=utf-8", l.note)
	return err
}

// send posts a body. Errors don't contain the address, because it may hold a secret.
func (r remote) send(ctx context.Context, kind string, body []byte) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, r.URL, bytes.NewReader(body))
	if err != nil {
		return nil, errors.New("the address can't be used")
	}
	req.Header.Set("Content-Type", kind)
	if r.Token != "" {
		req.Header.Set("Authorization", "Bearer "+r.Token)
	}
	res, err := r.client.Do(req)
	if err != nil {
		return nil, unaddressed(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(io.LimitReader(res.Body, mostAnswer))
	if err == nil && res.StatusCode/100 != 2 {
		err = fmt.Errorf("it answers %d", res.StatusCode)
	}
	return text, err
}

// other is another assent server, which compares the checkpoints.
type other struct{ remote }

// Assent returns a witness that is another assent server (POST /v1/witness). It gets
// checkpoints with proofs that each one continues the one that it has.
func Assent(r Remote) (Witness, error) {
	at, err := reach(r)
	at.URL = strings.TrimSuffix(r.URL, "/") + "/v1/witness"
	return &other{at}, err
}

// answer is the other server's response.
type answer struct {
	Kept
	Reason Reason `json:"reason"`
}

func (o *other) Show(ctx context.Context, l *log) error {
	a, err := o.show(ctx, l.note, l.publicKey, 0, nil)
	if err == nil && a.Reason == AnotherKey {
		a, err = o.handOver(ctx, l, a)
	}
	if err == nil && a.Reason == NeedsProof {
		a, err = o.proven(ctx, l, l.note, l.publicKey, a.Size)
	}
	switch {
	case err != nil || a.Reason == Taken:
		return err
	case a.Reason == AnotherKey:
		return fmt.Errorf("it knows the log by the key %s, and no handover leads from there to ours", a.PublicKey)
	}

	if err := l.against([]byte(a.Checkpoint), a.At); err != nil {
		return err
	}
	if a.Reason == Older { // another replica showed it first
		return nil
	}
	return fmt.Errorf("it does not take the checkpoint (%s), although the log continues what it has", a.Reason)
}

// handOver shows the checkpoints that two keys signed, beginning with the one whose first
// key the witness has.
func (o *other) handOver(ctx context.Context, l *log, a answer) (answer, error) {
	for _, h := range l.handovers {
		if h.size < a.Size {
			continue
		}
		next, err := o.proven(ctx, l, h.note, h.to, a.Size)
		if err != nil {
			return a, err
		}
		if next.Reason == Taken {
			a = next
		}
	}

	return o.show(ctx, l.note, l.publicKey, 0, nil)
}

// proven shows a checkpoint with a proof.
func (o *other) proven(ctx context.Context, l *log, note []byte, key string, since int64) (answer, error) {
	c, err := ledger.OpenCheckpoint(note, key)
	if err != nil {
		return answer{}, err
	}
	if c.Size < since {
		return answer{Reason: Older}, nil
	}
	proof, err := l.prove(c.Size, since)
	if err != nil {
		return answer{}, err
	}
	return o.show(ctx, note, key, since, proof)
}

func (o *other) show(
	ctx context.Context, note []byte, key string, since int64, proof []ledger.Hash,
) (a answer, err error) {
	body, err := json.Marshal(struct {
		Checkpoint string        `json:"checkpoint"`
		PublicKey  string        `json:"public_key"`
		Since      int64         `json:"since,omitempty"`
		Proof      []ledger.Hash `json:"proof,omitempty"`
	}{string(note), key, since, proof})
	if err != nil {
		return a, err
	}
	text, err := o.send(ctx, "application/json", body)
	if err != nil {
		return a, err
	}
	if err := json.Unmarshal(text, &a); err != nil {
		return a, fmt.Errorf("its answer can't be read: %w", err)
	}
	return a, nil
}
