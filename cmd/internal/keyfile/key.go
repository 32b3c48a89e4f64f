// Package keyfile keeps the key of a store in a file. The key signs the ledger, and all other
// secrets are derived from it.
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

// Key holds the secrets that all replicas of a service share.
type Key struct {
	Signer ledger.Signer // of the ledger's checkpoints
	Forms  []byte        // seals what a page showed into its forms; derived from the same file
	RAP    []byte        // seals RAP calls in the store; derived from the same file
	Rows   []byte        // authenticates the rows of the store; derived from the same file
	// Permits signs what tools check; derived from the same file
	Permits []byte
}

// Store returns the part that a store is bound to.
func (k Key) Store() store.Key {
	return store.Key{Public: k.Signer.PublicKey(), Secret: k.Rows, Sign: k.Signer.Sign, Check: k.Signer.Check}
}

// Load reads the key that signs the ledger. It returns fs.ErrNotExist if there is none. It writes
// the public key to FILE.pub if that is missing. It returns an error if others may read the key,
// because anyone who has it can forge the ledger.
func Load(path string) (Key, error) {
	secret, err := readKey(path)
	if err != nil {
		return Key{}, fmt.Errorf("the ledger's key: %w", err)
	}
	return parseKey(path, secret)
}

// LoadPublished is like Load, but reads the public key from FILE.pub, which saves a millisecond of
// each call of a hook. The codes of the store's rows, which are made with the secret, show that the
// two belong together. If the file is missing or has another key, LoadPublished does what Load does.
func LoadPublished(path string) (Key, error) {
	secret, err := readKey(path)
	if err != nil {
		return Key{}, fmt.Errorf("the ledger's key: %w", err)
	}
	public, err := term.ReadFile(path+".pub", nil)
	if err != nil {
		return parseKey(path, secret)
	}
	secret = strings.TrimSuffix(secret, "\n")
	signer, ok := ledger.ParsePublished(secret, strings.TrimSpace(string(public)))
	if !ok {
		return parseKey(path, secret)
	}

	return deriveKeys(path, secret, signer)
}

// Make is like Load, but creates the key if there is none yet, and reports in made that it did.
// Only an empty store may get a new key.
func Make(path, name string) (key Key, made bool, err error) {
	// Check this before looking for the key, because another process may be creating it right now.
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

// parseKey derives all keys from the secret, and writes the public key.
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

	key, err := deriveKeys(path, secret, signer)
	if err != nil {
		return Key{}, err
	}

	return key, publishKey(path+".pub", signer.PublicKey())
}

// deriveKeys derives the other keys from the secret.
func deriveKeys(path, secret string, signer ledger.Signer) (key Key, err error) {
	key.Signer = signer
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

	return key, nil
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

// exposed reports whether users other than the process's own and root can read a file. A file owned
// by root that the group of another user's process may read is not exposed, because Kubernetes
// mounts secrets that way.
func exposed(mode fs.FileMode, ownedByRoot bool, uid int) bool {
	others := mode & 0o077
	return others != 0 && !(others == 0o040 && ownedByRoot && uid != 0)
}

// createKey creates the key file atomically, and never overwrites another one.
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

// keyName derives the name of a key from the host's name, without spaces and plus signs.
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

// publishKey writes the public key for auditors. It returns an error if the file has a different
// key, because that one may have been pinned.
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
