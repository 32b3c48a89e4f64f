package ledger

import (
	"crypto/ed25519"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync"
	"unicode/utf8"

	"golang.org/x/mod/sumdb/note"
)

// Checkpoint describes a log at one moment. A signed checkpoint commits its signer to all entries
// up to then.
type Checkpoint struct {
	Origin string // name of the log, see Origin
	Size   int64  // number of entries
	Root   Hash
}

// Origin returns the name of a tenant's log in checkpoints.
func Origin(tenant string) string { return "assent/" + tenant }

// checkOrigin returns an error unless the origin names a tenant and fits on one line of a note.
func checkOrigin(origin string) error {
	tenant, ok := strings.CutPrefix(origin, Origin(""))
	if !ok || tenant == "" {
		return fmt.Errorf("the log %s has no tenant, expected %s and its name", quote(origin), Origin(""))
	}

	if !utf8.ValidString(origin) ||
		strings.ContainsFunc(origin, func(r rune) bool { return r < ' ' || r == 0x7f }) {
		return fmt.Errorf("the tenant of the log %s holds control characters or is not UTF-8", quote(origin))
	}

	return nil
}

// text returns the body of the note: origin, size and root, one per line.
func (c Checkpoint) text() string {
	return c.Origin + "\n" + strconv.FormatInt(c.Size, 10) + "\n" + c.Root.String() + "\n"
}

func parseCheckpoint(text string) (c Checkpoint, err error) {
	lines := strings.Split(text, "\n")
	if len(lines) != 4 {
		return c, errors.New("a checkpoint needs three lines: origin, size, root")
	}
	c.Origin = lines[0]
	if err := checkOrigin(c.Origin); err != nil {
		return c, err
	}
	if c.Size, err = strconv.ParseInt(lines[1], 10, 64); err != nil {
		return c, fmt.Errorf("the size of the checkpoint: %w", err)
	}
	if err := checkSize(c.Size); err != nil {
		return c, err
	}
	if c.Root, err = ParseHash(lines[2]); err != nil {
		return c, fmt.Errorf("the root of the checkpoint: %w", err)
	}
	if c.text() != text {
		return c, errors.New("the size of the checkpoint is not in its shortest form")
	}
	return c, nil
}

// Signer signs checkpoints with an Ed25519 key. It is safe for concurrent use, and printing it
// shows no secret.
type Signer struct {
	signer    note.Signer
	publicKey string
	derive    func() (Signer, error) // set if the public key is not derived yet
}

// GenerateKey creates a key. Its name, usually the host, must not contain a space or a plus sign.
// ParseSigner reads the secret; store it so that only the server can read it. rand must be
// cryptographically secure (crypto/rand.Reader).
func GenerateKey(name string, rand io.Reader) (s Signer, secret string, err error) {
	secret, _, err = note.GenerateKey(rand, name)
	if err != nil {
		return Signer{}, "", fmt.Errorf("generate a key: %w", err)
	}
	if s, err = ParseSigner(secret); err != nil {
		return Signer{}, "", fmt.Errorf(
			"generate a key: the name %s is empty, not UTF-8 or holds a space or +",
			quote(name),
		)
	}

	return s, secret, nil
}

// ParseSigner reads a secret of the form PRIVATE+KEY+name+hash+base64. Its errors don't contain the
// secret.
func ParseSigner(secret string) (Signer, error) {
	malformed := errors.New(
		"not a secret key of the form PRIVATE+KEY+name+hash+base64, as GenerateKey returns it",
	)
	signer, err := note.NewSigner(secret)
	if err != nil {
		return Signer{}, malformed
	}
	key, ok := decode64(strings.SplitN(secret, "+", 5)[4])
	if !ok {
		return Signer{}, malformed
	}
	public := ed25519.NewKeyFromSeed(key[1:]).Public().(ed25519.PublicKey) // the first byte is the algorithm
	publicKey, err := note.NewEd25519VerifierKey(signer.Name(), public)
	if err != nil {
		return Signer{}, malformed
	}
	return Signer{signer: signer, publicKey: publicKey}, nil
}

// ParsePublished is like ParseSigner, but reads the public key instead of deriving it, which would
// take a millisecond. It returns false if the public key has another name or hash than the secret.
// Before the signer signs, it derives the public key, and signs nothing if that is another one.
func ParsePublished(secret, publicKey string) (s Signer, ok bool) {
	verifier, err := parsePublicKey(publicKey)
	if err != nil {
		return Signer{}, false
	}
	name := fmt.Sprintf("%s+%08x+", verifier.Name(), verifier.KeyHash())
	if !strings.HasPrefix(secret, "PRIVATE+KEY+"+name) {
		return Signer{}, false
	}

	derive := sync.OnceValues(func() (Signer, error) {
		derived, err := ParseSigner(secret)
		if err == nil && derived.publicKey != publicKey {
			err = errors.New("the secret key does not belong to the public key")
		}
		return derived, err
	})

	return Signer{publicKey: publicKey, derive: derive}, true
}

// Check returns an error if the public key does not belong to the secret, or the secret is
// malformed.
func (s Signer) Check() error {
	if s.derive == nil {
		return nil
	}
	_, err := s.derive()
	return err
}

// PublicKey returns the key for verification, in the form name+hash+base64 (a note's verifier key).
func (s Signer) PublicKey() string { return s.publicKey }

// Sign returns the checkpoint as a signed note. Sign only checkpoints that extend the last one that
// was signed.
func (s Signer) Sign(c Checkpoint) ([]byte, error) { return signWith(c, s) }

// Handover signs with two keys when the second one replaces the first one. An auditor who trusts
// the first key may then trust the second one from that checkpoint on.
type Handover struct{ from, to Signer }

// Both returns the handover from one key to another.
func Both(from, to Signer) Handover { return Handover{from, to} }

// Sign returns the checkpoint as a note with both signatures.
func (h Handover) Sign(c Checkpoint) ([]byte, error) { return signWith(c, h.from, h.to) }

func signWith(c Checkpoint, by ...Signer) ([]byte, error) {
	var signers []note.Signer
	for _, s := range by {
		if s.derive != nil {
			derived, err := s.derive()
			if err != nil {
				return nil, fmt.Errorf("sign a checkpoint: %w", err)
			}
			s = derived
		}
		if s.signer == nil {
			return nil, errors.New("sign a checkpoint: the signer has no key")
		}
		signers = append(signers, s.signer)
	}

	if _, err := parseCheckpoint(c.text()); err != nil {
		return nil, fmt.Errorf("sign a checkpoint: %w", err)
	}
	signed, err := note.Sign(&note.Note{Text: c.text()}, signers...)
	if err != nil {
		return nil, fmt.Errorf("sign a checkpoint: %w", err)
	}
	return signed, nil
}

// OpenCheckpoint verifies that the note is a checkpoint signed with the key. It ignores other
// signatures in the note, such as those of witnesses. The error is a *VerifyError.
func OpenCheckpoint(signed []byte, publicKey string) (Checkpoint, error) {
	verifier, err := parsePublicKey(publicKey)
	if err != nil {
		return Checkpoint{}, fault(-1, "%v", err)
	}
	n, err := note.Open(signed, note.VerifierList(verifier))
	if err != nil {
		return Checkpoint{}, fault(-1, "%s", noteProblem(err, publicKey))
	}
	if _, ok := decode64(n.Sigs[0].Base64); !ok {
		return Checkpoint{}, fault(-1, "bad signature: its base64 is not canonical")
	}
	c, err := parseCheckpoint(n.Text)
	if err != nil {
		return Checkpoint{}, fault(-1, "%v", err)
	}
	return c, nil
}

// UnverifiedCheckpoint parses a note without verifying any signature, so its content is not proven.
func UnverifiedCheckpoint(signed []byte) (Checkpoint, error) {
	_, err := note.Open(signed, note.VerifierList())
	var unknown *note.UnverifiedNoteError
	if !errors.As(err, &unknown) {
		return Checkpoint{}, errors.New("it is not a signed note")
	}
	return parseCheckpoint(unknown.Note.Text)
}

func noteProblem(err error, publicKey string) string {
	var unsigned *note.UnverifiedNoteError
	var invalid *note.InvalidSignatureError
	switch {
	case errors.As(err, &unsigned):
		return "wrong key: the checkpoint is not signed with " + publicKey
	case errors.As(err, &invalid):
		return "bad signature: the checkpoint was changed after it was signed"
	}

	return "the checkpoint is not a signed note"
}

// parsePublicKey parses a public key. It accepts only the spelling that PublicKey returns.
func parsePublicKey(key string) (note.Verifier, error) {
	malformed := fmt.Errorf("%s is not a public key of the form name+hash+base64", quote(key))
	verifier, err := note.NewVerifier(key)
	if err != nil {
		return nil, malformed
	}
	prefix := fmt.Sprintf("%s+%08x+", verifier.Name(), verifier.KeyHash())
	encoded, ok := strings.CutPrefix(key, prefix)
	if _, canonical := decode64(encoded); !ok || !canonical {
		return nil, malformed
	}
	return verifier, nil
}
