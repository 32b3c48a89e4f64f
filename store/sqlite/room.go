package sqlite

import (
	"errors"
	"fmt"
	"time"

	driver "modernc.org/sqlite"
	codes "modernc.org/sqlite/lib"
)

const (
	// leastRoom is the number of bytes that must be free on the disk.
	leastRoom = 256 << 10
	// fullFor is the time for which the store counts as full after a write failed for lack
	// of space. Smaller writes may still succeed although requests no longer fit.
	fullFor = 30 * time.Second
)

// Room returns an error if the disk is full, or was full at a recent write.
func (e *engine) Room() error {
	if at := e.fullAt.Load(); at != nil && time.Since(*at) < fullFor {
		return fmt.Errorf("the disk is full, or can't be written: a write failed at %s", at.UTC().Format(time.RFC3339))
	}
	if free, known := freeBytes(e.path); known && free < leastRoom {
		return fmt.Errorf("the disk is full: it has %d bytes left", free)
	}
	return nil
}

// noteFull remembers a write that failed for lack of space.
func (e *engine) noteFull(err error) {
	failed, ok := errors.AsType[*driver.Error](err)
	if !ok {
		return
	}
	switch failed.Code() & 0xff { // the higher bits only give details
	case codes.SQLITE_FULL, codes.SQLITE_IOERR:
		now := time.Now()
		e.fullAt.Store(&now)
	}
}
