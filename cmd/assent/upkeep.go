package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"time"

	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/approval/ledger"
	"github.com/assent-dev/assent/cmd/internal/config"
	"github.com/assent-dev/assent/cmd/internal/keyfile"
	"github.com/assent-dev/assent/cmd/internal/operate"
	"github.com/assent-dev/assent/mcp"
	"github.com/assent-dev/assent/rap"
	"github.com/assent-dev/assent/server/auth"
	"github.com/assent-dev/assent/server/directory"
	"github.com/assent-dev/assent/store"
	"github.com/assent-dev/assent/store/watermark"
)

// backup writes a backup, and records its digest in the ledger. The backup itself does not contain
// that entry.
func backup(ctx context.Context, s store.Store, w io.Writer) error {
	sum := sha256.New()
	if err := s.Backup(ctx, io.MultiWriter(w, sum)); err != nil {
		return err
	}
	tenants, err := s.Tenants(ctx)
	if err != nil {
		return err
	}
	facts := map[string]any{"sha256": hex.EncodeToString(sum.Sum(nil))}
	for _, tenant := range tenants {
		if err := records(s).Record(ctx, tenant, approval.EventBackedUp, "", operator, facts); err != nil {
			return err
		}
	}
	return nil
}

// restore fills a store from a backup, or accepts an already restored one, and voids what must not
// outlive a restore. No service opens the store until it is done, so it can be repeated.
func restore(ctx context.Context, c config.Store, from io.Reader) (done operate.Restored, err error) {
	if _, err := keyfile.Load(c.KeyFile); err != nil {
		return done, fmt.Errorf("%w; it must be the key that signed the ledger of the backup: give --key", err)
	}

	s, err := openStore(ctx, c, nil)
	if err != nil {
		return done, err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	if from != nil {
		err = s.Restore(ctx, from)
	} else {
		err = s.RestoreInPlace(ctx)
	}
	if err != nil {
		return done, err
	}
	r := restoring{keyedStore: s, how: "backup"}
	if from == nil {
		r.how = "in_place"
	}
	if err := r.void(ctx); err != nil {
		return r.done, err
	}
	if err := s.FinishRestore(ctx); err != nil {
		return r.done, err
	}
	return r.done, sealWhole(ctx, s, s.key.Signer.Sign)
}

// restoring is the state of a restore.
type restoring struct {
	*keyedStore
	how  string
	done operate.Restored
}

func (r *restoring) void(ctx context.Context) error {
	before := r.Integrity().Before
	tenants, err := r.Tenants(ctx)
	if err != nil {
		return err
	}
	for tenant := range before {
		if !slices.Contains(tenants, tenant) {
			tenants = append(tenants, tenant)
		}
	}
	slices.Sort(tenants)
	if err := r.endSignIns(ctx, tenants); err != nil {
		return fmt.Errorf("end the sessions: %w", err)
	}
	if err := r.endCalls(ctx); err != nil {
		return fmt.Errorf("end the calls on their way: %w", err)
	}
	for _, tenant := range tenants {
		if err := r.voidTenant(ctx, tenant, before[tenant]); err != nil {
			return fmt.Errorf("tenant %q: %w", tenant, err)
		}
	}
	return nil
}

// voidTenant voids the permits and grants of a tenant, restores its freezes, revokes tokens that
// are known to be revoked, and records the restore.
func (r *restoring) voidTenant(ctx context.Context, tenant string, before store.Mark) error {
	size, signed, err := r.Checkpoint(ctx, tenant)
	if err != nil {
		return err
	}
	voided, err := records(r).Void(ctx, tenant, operator, before.Frozen)
	if err != nil {
		return err
	}
	tokens, err := r.endTokens(ctx, tenant)
	if err != nil {
		return err
	}
	facts := map[string]any{
		"how":      r.how,
		"size":     size,
		"permits":  voided.Permits,
		"grants":   voided.Grants,
		"freezes":  voided.Freezes,
		"tokens":   tokens,
		"sessions": r.done.Sessions,
		"calls":    r.done.Calls,
	}
	if r.mark == nil {
		facts["unknown"] = []any{"entries", "freezes", "tokens"}
		r.done.Unknown = true
	}
	if c, err := ledger.OpenCheckpoint(signed, r.key.Signer.PublicKey()); err == nil {
		facts["root"] = c.Root.String()
	}
	if before.Size > size {
		facts["lost_size"], facts["lost_root"] = before.Size, before.Root.String()
		r.done.Lost += int(before.Size - size)
	}
	r.done.Permits, r.done.Grants = r.done.Permits+voided.Permits, r.done.Grants+voided.Grants
	r.done.Freezes, r.done.Tokens = r.done.Freezes+voided.Freezes, r.done.Tokens+tokens
	return records(r).Record(ctx, tenant, approval.EventRestored, "", operator, facts)
}

// endTokens revokes tokens that were revoked after the backup, according to the watermark.
func (r *restoring) endTokens(ctx context.Context, tenant string) (n int, err error) {
	if r.mark == nil {
		return 0, nil
	}
	for _, id := range r.mark.AllRevoked(tenant) {
		at, _ := r.mark.Revoked(tenant, id)
		ended, err := r.EndToken(ctx, tenant, id, at)
		if err != nil {
			return n, err
		}
		if ended {
			n++
		}
	}

	return n, nil
}

// endSignIns deletes sessions, links, and the people and groups that sign-ins added.
func (r *restoring) endSignIns(ctx context.Context, tenants []string) error {
	buckets := auth.Buckets()
	for _, tenant := range tenants {
		buckets = append(buckets, directory.Bucket(tenant))
	}
	for _, bucket := range buckets {
		all, err := r.ListValues(ctx, bucket, time.Time{})
		if err != nil {
			return err
		}
		for _, key := range slices.Sorted(maps.Keys(all)) {
			if err := r.DeleteValue(ctx, bucket, key); err != nil {
				return err
			}
		}
		if bucket == buckets[0] {
			r.done.Sessions = len(all)
		}
	}

	return nil
}

// outlives reports whether a record may stay in a store that was restored from a backup.
type outlives func(key []byte, r store.Record) (bool, error)

// endCalls deletes unfinished calls of gateways and tools, and what users allowed for a session.
func (r *restoring) endCalls(ctx context.Context) error {
	for prefix, keeps := range map[string]outlives{
		rap.NamespacePrefix: rap.OutlivesRestore,
		mcp.NamespacePrefix: mcp.OutlivesRestore,
	} {
		namespaces, err := r.Namespaces(ctx, prefix)
		if err != nil {
			return err
		}
		for _, room := range namespaces {
			if err := r.endRoom(ctx, room, keeps); err != nil {
				return err
			}
		}
	}

	return nil
}

func (r *restoring) endRoom(ctx context.Context, room string, keeps outlives) error {
	const page = 64 // they may be large
	for after := ""; ; {
		all, err := r.ListRecords(ctx, room, "", after, page)
		if err != nil {
			return err
		}
		for _, record := range all {
			after = record.Key
			keep, err := keeps(r.key.RAP, record)
			if err != nil {
				return err
			}
			if keep {
				continue
			}
			if err := r.DeleteRecord(ctx, room, record.Key, record.Version); err != nil {
				return err
			}
			r.done.Calls++
		}

		if len(all) < page {
			return nil
		}
	}
}

// sealWhole seals all entries of the ledger.
func sealWhole(ctx context.Context, s store.Store, sign func(ledger.Checkpoint) ([]byte, error)) error {
	const step = 1000
	for {
		n, err := s.Seal(ctx, step, sign)
		if err != nil || n < step {
			return err
		}
	}
}

// rotateKey changes the key of a store to the one in another file.
func rotateKey(ctx context.Context, c config.Store, keyFile, mark string) (before, after string, err error) {
	old, err := keyfile.Load(c.KeyFile)
	if err != nil {
		return "", "", err
	}
	host, _ := os.Hostname() // only a name for people to tell keys apart
	next, _, err := keyfile.Make(keyFile, host)
	if err != nil {
		return "", "", err
	}
	if c.Watermark != config.NoWatermark && mark != config.NoWatermark {
		if err := watermark.Copy(c.Watermark, mark); err != nil {
			return "", "", err
		}
	}
	c.Watermark = mark
	s, err := openStore(ctx, c, nil)
	if err != nil {
		return "", "", err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	if err := s.Verify(ctx); err != nil {
		return "", "", err
	}
	err = s.Rotate(ctx, store.Rotation{
		Key:    next.Store(),
		Sign:   ledger.Both(old.Signer, next.Signer).Sign,
		Reseal: reseal(old.RAP, next.RAP),
	})
	return old.Signer.PublicKey(), next.Signer.PublicKey(), err
}

// reseal returns a function that seals the calls of RAP and MCP with the next key.
func reseal(before, after []byte) func(namespace, key string, value []byte) ([]byte, error) {
	ofRAP, ofMCP := rap.Reseal(before, after), mcp.Reseal(before, after)
	return func(namespace, key string, value []byte) ([]byte, error) {
		value, err := ofRAP(namespace, key, value)
		if err != nil {
			return nil, err
		}
		return ofMCP(namespace, key, value)
	}
}
