package durabletest

import (
	"context"
	"errors"
	"sync/atomic"

	"github.com/assent-dev/assent/store"
)

// errFull is the error of a store that has no space left.
var errFull = errors.New("database or disk is full")

// shaky are records that count writes and call a function before and after each.
type shaky struct {
	store.Records
	writes atomic.Int64
	before func(n int64) error // its error is returned in place of the write
	after  func(n int64)
}

func (s *shaky) write(write func() error) error {
	n := s.writes.Add(1)
	if s.before != nil {
		if err := s.before(n); err != nil {
			return err
		}
	}
	err := write()
	if s.after != nil {
		s.after(n)
	}
	return err
}

// PutRecord counts as a write.
func (s *shaky) PutRecord(ctx context.Context, r store.Record) (version int64, err error) {
	err = s.write(func() error {
		version, err = s.Records.PutRecord(ctx, r)
		return err
	})
	return version, err
}

// DeleteRecord counts as a write.
func (s *shaky) DeleteRecord(ctx context.Context, namespace, key string, version int64) error {
	return s.write(func() error {
		return s.Records.DeleteRecord(ctx, namespace, key, version)
	})
}
