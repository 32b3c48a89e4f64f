package sqlite

import (
	"errors"
	"fmt"
	"time"

	driver "modernc.org/sqlite"
	codes "modernc.org/sqlite/lib"
)

const (
	// leastRoom is how many bytes the disk must have free.
	leastRoom = 256 << 10
	// fullFor is how long a write that failed for lack of room counts: a
	// small write may still fit where requests don't.
	fullFor = 30 * time.Second
)

// Room fails if the disk is full, or was when something was written last.
func (e *engine) Room() error {
	if at := e.fullAt.Load(); at != nil && time.Since(*at) < fullFor {
		return fmt.Errorf("the disk is full, or can't be written: a write failed at %s", at.UTC().Format(time.RFC3339))
	}
	if free, known := freeBytes(e.path); known && free < leastRoom {
		return fmt.Errorf("the disk is full: it has %d bytes left", free)
	}
	return nil
}

// noteFull remembers a write that failed for lack of room.
func (e *engine) noteFull(err error) {
	failed, ok := errors.AsType[*driver.Error](err)
	if !ok {
		return
	}
	switch failed.Code() & 0xff { // the rest says what for
	case codes.SQLITE_FULL, codes.SQLITE_IOERR:
		now := time.Now()
		e.fullAt.Store(&now)
	}
}
