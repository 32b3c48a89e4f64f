// Package keyfile keeps the key of a store in a file: it signs the
// ledger, and everything else that is secret derives from it.
package keyfile

import (
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"runtime"
	"strings"

	"github.com/assent-dev/assent/approval/ledger"
	"github.com/assent-dev/assent/cmd/internal/system"
	"github.com/assent-dev/assent/cmd/internal/term"
	"github.com/assent-dev/assent/store"
)

// Key is what a service must keep secret, and every replica of it must share.
type Key struct {
	Signer ledger.Signer // of the ledger's checkpoints
	Forms  []byte        // seals what a page showed into its forms; derived from the same file
	RAP    []byte        // seals RAP calls in the store; derived from the same file
	Rows   []byte        // authenticates the rows of the store; derived from the same file
	// Permits signs what tools check; derived from the same file
	Permits []byte
}

// Store is the part that a store is bound to.
func (k Key) Store() store.Key {
	return store.Key{Public: k.Signer.PublicKey(), Secret: k.Rows, Sign: k.Signer.Sign}
}

// Load reads the key that signs the ledger; fs.ErrNotExist when there
// is none. The public key beside it (FILE.pub) is written when it is
// missing. A key that others may read is refused: whoever holds it can
// write history.
func Load(path string) (Key, error) {
	secret, err := readKey(path)
	if err != nil {
		return Key{}, fmt.Errorf("the ledger's key: %w", err)
	}
	return parseKey(path, secret)
}

// Make is Load that makes the key when there is none yet; made tells
// whether it did. Only an empty store may get a new key.
func Make(path, name string) (key Key, made bool, err error) {
	// Before the key is looked for, which another process may make just now.
	published := term.Exists(path+".pub") == nil

	secret, err := readKey(path)
	if errors.Is(err, fs.ErrNotExist) {
		if published {
			return Key{}, false, fmt.Errorf(
				"the ledger's key %s is not there, and its public key %s.pub is: put the key back, "+
					"or remove the public key when another one is meant to be made",
				path,
				path,
			)
		}

		secret, made, err = createKey(path, name)
	}

	if err != nil {
		return Key{}, false, fmt.Errorf("the ledger's key: %w", err)
	}
	key, err = parseKey(path, secret)
	return key, made, err
}

// parseKey derives everything from the secret, and publishes what is public.
func parseKey(path, secret string) (Key, error) {
	secret = strings.TrimSuffix(secret, "\n")
	signer, err := ledger.ParseSigner(secret)
	if err != nil {
		return Key{}, fmt.Errorf(
			"the ledger's key %s: %w; put the right file back: a new key starts a log that old checkpoints don't match",
			path,
			err,
		)
	}

	key := Key{Signer: signer}
	for label, into := range map[string]*[]byte{
		"assent forms v1":   &key.Forms,
		"assent permits v1": &key.Permits,
		"assent rap v1":     &key.RAP,
		"assent store v1":   &key.Rows,
	} {
		if *into, err = hkdf.Key(sha256.New, []byte(secret), nil, label, 32); err != nil {
			return Key{}, fmt.Errorf("the ledger's key %s: %w", path, err)
		}
	}

	return key, publishKey(path+".pub", signer.PublicKey())
}

func readKey(path string) (string, error) {
	info, err := os.Stat(path)
	if err != nil {
		return "", err
	}
	if runtime.GOOS != "windows" && exposed(info.Mode().Perm(), ownedByRoot(info), os.Getuid()) {
		return "", fmt.Errorf(
			"%s can be read by others (mode %04o), expected 0600: run chmod 600 on it, and think of the key as "+
				"known if it stood there for long",
			path,
			info.Mode().Perm(),
		)
	}

	text, err := term.ReadFile(path, nil)
	return string(text), err
}

// exposed reports whether others than the process and root can read a
// file. A file of root that the group of another user's process may read is
// not exposed: Kubernetes mounts secrets so.
func exposed(mode fs.FileMode, ownedByRoot bool, uid int) bool {
	others := mode & 0o077
	return others != 0 && !(others == 0o040 && ownedByRoot && uid != 0)
}

// createKey puts the key in place whole or not at all, and never over
// another.
func createKey(path, name string) (secret string, made bool, err error) {
	_, secret, err = ledger.GenerateKey(keyName(name), rand.Reader)
	if err != nil {
		return "", false, err
	}
	if err := system.CreateText(path, 0o600, secret+"\n"); errors.Is(
		err,
		fs.ErrExist,
	) { // another process was faster
		secret, err = readKey(path)
		return secret, false, err
	} else if err != nil {
		return "", false, err
	}

	return secret, true, nil
}

// keyName makes a name of a key of the host's: neither space nor plus.
func keyName(host string) string {
	clean := strings.Map(func(r rune) rune {
		if r > ' ' && r < 0x7f && r != '+' {
			return r
		}
		return -1
	}, host)
	if clean == "" {
		return "assent"
	}
	return clean
}

// publishKey writes the public key for auditors. One that belongs to
// another key is refused: somebody may have pinned it.
func publishKey(path, public string) error {
	old, err := term.ReadFile(path, nil)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if err := system.CreateText(path, 0o644, public+"\n"); err != nil && !errors.Is(err, fs.ErrExist) {
			return fmt.Errorf("the ledger's public key: %w", err)
		}
		return nil
	case err != nil:
		return fmt.Errorf("the ledger's public key: %w", err)
	case strings.TrimSpace(string(old)) != public:
		return fmt.Errorf(
			"%s does not belong to the key beside it: put the right key back, or remove the file when the key was "+
				"changed on purpose",
			path,
		)
	}

	return nil
}
