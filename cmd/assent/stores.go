package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/cmd/internal/config"
	"github.com/assent-dev/assent/cmd/internal/keyfile"
	"github.com/assent-dev/assent/cmd/internal/stores"
	"github.com/assent-dev/assent/cmd/internal/term"
	"github.com/assent-dev/assent/store"
	"github.com/assent-dev/assent/store/watermark"
)

// keyedStore is a store with its key and the watermark that is kept outside of it.
type keyedStore struct {
	store.Store
	key  keyfile.Key
	mark *watermark.Watermark // nil: nothing is
}

// Close closes the store, and then writes what the watermark has not written yet.
func (s *keyedStore) Close() error {
	err := s.Store.Close()
	if s.mark != nil {
		err = errors.Join(err, s.mark.Close())
	}
	return err
}

// mostClockOff is the maximum difference between the clock of a server and that of its database,
// which all replicas share.
const mostClockOff = 30 * time.Second

// checkClock returns an error if this machine's clock differs from the database's. Deadlines that
// replicas with other clocks have written would pass too early, or never.
func (s *keyedStore) checkClock(ctx context.Context) error {
	ahead, err := s.ClockAhead(ctx)
	if err != nil || ahead.Abs() <= mostClockOff {
		return err
	}
	word := "ahead of"
	if ahead < 0 {
		word = "behind"
	}
	return fmt.Errorf(
		"the clock of this machine is %s %s the clock of the database's server, and at most %s is allowed: "+
			"set both clocks (NTP)",
		ahead.Abs().Round(time.Second), word, mostClockOff,
	)
}

// openStore opens either engine with the key from a file. A new store, and a key for it, are
// created only if the configuration allows it: a misspelt path must not look like an empty store,
// nor a missing secret like a first start. Problems are logged to log unless it is nil.
func openStore(ctx context.Context, c config.Store, log *slog.Logger) (s *keyedStore, err error) {
	if c, err = c.WithDefaults(); err != nil {
		return nil, err
	}
	key, made, err := storeKey(ctx, c)
	if err != nil {
		return nil, err
	}
	s = &keyedStore{key: key}
	trust := store.Trust{Key: key.Store(), Unfinished: c.Unfinished, Alarm: alarm(log)}
	if s.mark, err = openWatermark(c, made, log); err == nil {
		if s.mark != nil {
			trust.Watermark = s.mark
		}
		s.Store, err = stores.Open(ctx, c.Where, trust)
	}

	if errors.Is(err, store.ErrKey) && made { // another process was quicker to bind the store
		err = errors.Join(err, os.Remove(c.KeyFile), os.Remove(c.KeyFile+".pub"))
	}
	if c.Published && !made && (errors.Is(err, store.ErrKey) || errors.Is(err, store.ErrTampered)) {
		// If the published key is wrong, the error with the derived key says so.
		c.Published = false
		if s.mark != nil {
			if err := s.mark.Close(); err != nil {
				return nil, err
			}
		}
		return openStore(ctx, c, log)
	}
	if err != nil {
		return nil, err
	}
	return s, nil
}

// storeKey reads the key, or creates one for an empty store.
func storeKey(ctx context.Context, c config.Store) (key keyfile.Key, made bool, err error) {
	if _, err := os.Stat(c.Where); err != nil && !stores.IsURL(c.Where) && !c.Create {
		return keyfile.Key{}, false, fmt.Errorf("the store: %w (assent serve makes one)", err)
	}
	load := keyfile.Load
	if c.Published {
		load = keyfile.LoadPublished
	}
	key, err = load(c.KeyFile)
	if !errors.Is(err, fs.ErrNotExist) {
		return key, false, err
	}
	if err := mayGetKey(ctx, c); err != nil {
		return keyfile.Key{}, false, err
	}
	if !c.Create {
		return keyfile.Key{}, false, err
	}
	if err := makeConfigDir(filepath.Dir(c.KeyFile)); err != nil {
		return keyfile.Key{}, false, fmt.Errorf("the key of the ledger: %w", err)
	}
	host, _ := os.Hostname() // only a name for people to tell keys apart
	return keyfile.Make(c.KeyFile, host)
}

// makeConfigDir makes a directory below that of assent in the configuration of the user. It makes no
// other, because a misspelt path would become a new store.
func makeConfigDir(dir string) error {
	own := config.Reader{Streams: term.Streams{Env: os.Getenv}}.InConfigDir("")
	if own == "" {
		return nil
	}
	below, err := filepath.Rel(own, dir)
	if err != nil || !filepath.IsLocal(below) {
		return nil
	}
	return os.MkdirAll(dir, 0o700)
}

// mayGetKey returns an error if a store is not empty, because a key for it must exist somewhere.
func mayGetKey(ctx context.Context, c config.Store) error {
	if _, err := os.Stat(c.Where); err != nil && !stores.IsURL(c.Where) {
		return nil
	}
	s, err := stores.Open(ctx, c.Where, store.Trust{})
	var bound *store.KeyError
	if errors.As(err, &bound) {
		return fmt.Errorf(
			"this store is signed by %s, and %s is not there: mount that key there (a new one is made for an empty "+
				"store only)",
			bound.Bound,
			c.KeyFile,
		)
	}

	if err != nil {
		return err
	}
	id, err := s.Identity(ctx)
	if err := errors.Join(err, s.Close()); err != nil {
		return err
	}
	if !id.Empty {
		return fmt.Errorf(
			"the store holds data, and %s, the key that signs its ledger, is not there: mount it there (a new one "+
				"is made for an empty store only)",
			c.KeyFile,
		)
	}

	return nil
}

// openWatermark opens the configured watermark. A missing file is created, which is logged unless
// the key was just created, too.
func openWatermark(c config.Store, first bool, log *slog.Logger) (*watermark.Watermark, error) {
	if c.Watermark == config.NoWatermark {
		if log != nil {
			log.Warn(
				"nothing is remembered outside of the database: a database that was put back to an older state is "+
					"not noticed",
				"hint",
				"give --watermark FILE on a volume of its own",
			)
		}

		return nil, nil
	}

	_, missing := os.Stat(c.Watermark)
	if log != nil && !first && errors.Is(missing, fs.ErrNotExist) {
		log.Warn(
			"the watermark is missing, and a new one was created: a database that was put back to an older state before "+
				"now is not noticed",
			"file", c.Watermark,
			"hint", "put the file back if it was lost",
		)
	}

	w, err := watermark.Open(c.Watermark, placeOf(c.Where), func(err error) {
		if log != nil {
			log.Error("the watermark can't be written", "error", err)
		}
	})
	if err != nil {
		return nil, fmt.Errorf("%w (--watermark FILE says where; --watermark none does without)", err)
	}

	return w, nil
}

// placeOf returns the location of a store without its password.
func placeOf(where string) string {
	if stores.IsURL(where) {
		if u, err := url.Parse(where); err == nil {
			return u.Redacted()
		}
	}
	if path, err := filepath.Abs(where); err == nil {
		return path
	}
	return where
}

// mostAlarms limits how many logged alarms are remembered.
const mostAlarms = 1000

// alarm returns a function that logs each sign of tampering once.
func alarm(log *slog.Logger) func(*store.TamperedError) {
	if log == nil {
		return nil
	}
	var mu sync.Mutex
	told := map[store.TamperedError]bool{}
	return func(e *store.TamperedError) {
		mu.Lock()
		defer mu.Unlock()
		if told[*e] {
			return
		}
		if len(told) >= mostAlarms {
			clear(told)
		}
		told[*e] = true
		log.Error(
			"THE DATABASE WAS TAMPERED WITH",
			"tenant",
			e.Tenant,
			"what",
			e.What,
			"problem",
			e.Problem,
			"hint",
			"it is not used: find out who can write to the database, then restore a backup or take the row away",
		)
	}
}

// warnOfRole warns if the database role of this process may delete entries of the ledger.
func (a *app) warnOfRole(ctx context.Context) error {
	id, err := a.store.Identity(ctx)
	if err == nil && id.Erases {
		a.log.Warn(
			"the database lets this server delete entries of the ledger",
			"hint",
			"connect with a role that can only add to it: docs/guides/postgresql.md",
		)
	}

	return err
}

// recordStart records in the ledger of each tenant that a process began to serve it.
func recordStart(ctx context.Context, s store.Store, key keyfile.Key, tenants ...string) error {
	for _, tenant := range tenants {
		facts := map[string]any{"version": term.Version, "public_key": key.Signer.PublicKey()}
		if err := records(s).Record(ctx, tenant, approval.EventStarted, "", serverName, facts); err != nil {
			return fmt.Errorf("record the start: %w", err)
		}
	}

	return nil
}

// serverName is the actor in the ledger for acts of the service itself.
const serverName = "server"
