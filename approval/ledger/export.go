package ledger

import (
	"bufio"
	"fmt"
	"io"
	"strconv"
	"unicode/utf8"
)

const exportFormat = "assent-ledger/1"

// Size limits of files, in bytes. Escaping at most doubles a leaf, and the limit of the openings
// already includes JSON escaping.
const (
	maxNote  = 64 << 10
	maxLine  = 2*maxLeaf + maxOpenings + 1024
	maxProof = maxLine + 4*maxNote
)

// Writer writes a log as JSON lines, in constant memory: a header with the signed checkpoint, one
// line per entry, and a last line with the number of entries. The format is canonical, and Verify
// accepts no other spelling.
type Writer struct {
	out  *bufio.Writer
	size int64 // of the checkpoint
	next int64 // index of the next entry
	line []byte
	err  error
}

// NewWriter starts an export of the log that the checkpoint, a signed note, describes. handovers
// are checkpoints of the log that were signed with two keys when a key was replaced, oldest first.
// Handovers later than the checkpoint are left out.
func NewWriter(w io.Writer, checkpoint []byte, publicKey string, handovers ...[]byte) (*Writer, error) {
	if len(checkpoint) > maxNote {
		return nil, fmt.Errorf(
			"export: a checkpoint of %d bytes, at most %d are allowed",
			len(checkpoint),
			maxNote,
		)
	}

	c, err := OpenCheckpoint(checkpoint, publicKey)
	if err != nil {
		return nil, fmt.Errorf("export: %w", err)
	}
	var notes []string
	for _, h := range handovers {
		n, err := UnverifiedCheckpoint(h)
		if err != nil {
			return nil, fmt.Errorf("export: a handover: %w", err)
		}
		if n.Size <= c.Size {
			notes = append(notes, string(h))
		}
	}

	out := &Writer{out: bufio.NewWriterSize(w, 64<<10), size: c.Size}
	return out, out.put(appendHeader(nil, c.Origin, publicKey, string(checkpoint), notes...))
}

// Write adds the next entry. It only checks that the line can be written and that the checkpoint's
// size is not exceeded, so that a damaged log can be exported and inspected.
func (w *Writer) Write(leaf, openings []byte) error {
	if w.err != nil {
		return w.err
	}
	if w.next >= w.size {
		return w.fail("the checkpoint covers %d entries, here is one more", w.size)
	}
	o, err := ParseOpenings(openings)
	if err != nil {
		return w.fail("entry %d: openings: %w", w.next, err)
	}
	if len(leaf) > maxLeaf || !utf8.Valid(leaf) {
		return w.fail("entry %d: the leaf is not UTF-8, or has more than %d bytes", w.next, maxLeaf)
	}

	w.line = appendEntry(w.line[:0], w.next, LeafHash(leaf), string(leaf), o)
	w.next++
	return w.put(w.line)
}

// Close writes the last line. If entries are missing, it returns an error, and the export can't be
// verified. It does not close the underlying writer.
func (w *Writer) Close() error {
	if w.err != nil {
		return w.err
	}
	if w.next != w.size {
		return w.fail("the checkpoint covers %d entries, but only %d were written", w.size, w.next)
	}

	if err := w.put(appendEnd(w.line[:0], w.next)); err != nil {
		return err
	}
	if err := w.out.Flush(); err != nil {
		return w.fail("%w", err)
	}
	return nil
}

func (w *Writer) put(line []byte) error {
	if _, err := w.out.Write(line); err != nil {
		return w.fail("%w", err)
	}
	return nil
}

// fail makes all later calls return the same error, so that an export with a missing entry can't be
// completed.
func (w *Writer) fail(format string, args ...any) error {
	w.err = fmt.Errorf("export: "+format, args...)
	return w.err
}

// appendHeader writes handovers only if there are any, so that the header of a log without key
// rotation keeps its old form.
func appendHeader(dst []byte, origin, publicKey, checkpoint string, handovers ...string) []byte {
	dst = appendText(append(dst, `{"format":"`+exportFormat+`","origin":`...), origin)
	dst = appendText(append(dst, `,"public_key":`...), publicKey)
	dst = appendText(append(dst, `,"checkpoint":`...), checkpoint)
	for i, note := range handovers {
		open := `,`
		if i == 0 {
			open = `,"handovers":[`
		}
		dst = appendText(append(dst, open...), note)
	}

	if len(handovers) > 0 {
		dst = append(dst, ']')
	}
	return append(dst, "}\n"...)
}

// appendEntry also writes the hash of the leaf. The hash proves nothing, but it identifies the
// entry if a leaf was edited without its hash.
func appendEntry(dst []byte, index int64, hash Hash, leaf string, openings Openings) []byte {
	dst = strconv.AppendInt(append(dst, `{"index":`...), index, 10)
	dst = appendText(append(dst, `,"hash":`...), hash.String())
	dst = appendText(append(dst, `,"leaf":`...), leaf)
	dst = appendOpeningsObject(append(dst, `,"openings":`...), openings)
	return append(dst, "}\n"...)
}

func appendEnd(dst []byte, entries int64) []byte {
	return append(strconv.AppendInt(append(dst, `{"entries":`...), entries, 10), "}\n"...)
}

func appendOpeningsObject(dst []byte, openings Openings) []byte {
	if len(openings) == 0 {
		return append(dst, "{}"...)
	}
	return appendOpenings(dst, openings.sorted())
}
