package sqlstore

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"strings"

	"github.com/assent-dev/assent/store"
)

const (
	backupFormat = "assent-backup-1"
	longestLine  = 256 << 20 // bytes
	restoreStep  = 200       // rows sent at once
	// backupSchema numbers the form of the rows. It grows with every change of tables().
	backupSchema = 6
)

// kind of a column.
type kind byte

const (
	text  kind = 's'
	whole kind = 'i'
	bytea kind = 'b'
)

type column struct {
	name string
	kind kind
}

// table is one table as backups hold it.
type table struct {
	name    string
	columns []column
	key     []string // primary key, and order of the rows
	counter string   // column that the database counts up, if any
	codes   []coded
}

// coded is a column that holds the code of other columns. The label separates codes of
// different kinds in one table.
type coded struct {
	column string
	label  string
	covers []string
}

func (t table) names() []string {
	out := make([]string, len(t.columns))
	for i, c := range t.columns {
		out[i] = c.name
	}
	return out
}

// with adds a column that holds a code over the columns in covers, in that order. Code that
// computes the same code elsewhere must keep the order.
func (t table) with(column, covers string) table {
	label := t.name
	if part, ok := strings.CutSuffix(column, "_code"); ok {
		label += " " + part
	}
	t.codes = append(t.codes, coded{column, label, strings.Fields(covers)})
	return t
}

func define(name, key, columns string) table {
	t := table{name: name, key: strings.Fields(key)}
	for c := range strings.FieldsSeq(columns) {
		name, k, found := strings.Cut(c, ":")
		if !found {
			k = string(text)
		}
		t.columns = append(t.columns, column{name, kind(k[0])})
	}

	return t
}

func (t table) counts(column string) table {
	t.counter = column
	return t
}

// tables returns all tables except migrations and pulse. A column that no code covers is
// only an index: a value found through it is checked against the document. Votes are used
// for statistics only, and hashes are checked by the root of their tree.
func tables() []table {
	return []table{
		define("periods", "n", "n:i id public_key why at:i code:b").with("code", "n id public_key why at"),
		define(
			"requests",
			"tenant id",
			"tenant id version:i state cause agent target principal message rules group_names approvals:i needed:i "+
				"created:i "+
				"deadline:i due:i closed:i binding pruned:i body answering asker bytes:i code:b line_code:b",
		).
			with("code", "tenant id version body").
			with(
				"line_code",
				"tenant id version state cause agent target principal message rules group_names approvals needed "+
					"created deadline answering",
			),
		define(
			"grants",
			"tenant id",
			"tenant id agent target created:i expires:i revoked:i max_uses:i uses:i pruned:i body version:i code:b",
		).
			with("code", "tenant id version body"),
		define("frozen", "tenant", "tenant version:i body code:b").with("code", "tenant version body"),
		define(
			"memories",
			"tenant name",
			"tenant name digest request grant_id expires:i code:b",
		).with("code", "tenant name digest request grant_id expires"),
		define("votes", "seq", "seq:i tenant request agent target person verdict waited:i at:i").counts("seq"),
		define(
			"pasts",
			"tenant id state",
			"tenant id state at:i ends:i until:i agent principal session kind container name body:b code:b",
		).with("code", "tenant id state body"),
		define("entries", "seq", "seq:i tenant idx:i type subject at:i leaf:b openings:b version:i code:b").
			with("code", "tenant idx type subject at version leaf").counts("seq"),
		define("hashes", "tenant pos", "tenant pos:i hash:b"),
		define(
			"trees",
			"tenant",
			"tenant size:i root:b checkpoint:b pruned:i code:b",
		).with("code", "tenant size root checkpoint"),
		define(
			"handovers",
			"tenant size",
			"tenant size:i checkpoint:b code:b",
		).with("code", "tenant size checkpoint"),
		define(
			"tokens",
			"tenant id",
			"id tenant name hash scopes agents person maker created:i expires:i revoked:i code:b",
		).
			with("code", "tenant id name hash scopes agents person maker created expires revoked"),
		define(
			"records",
			"room name",
			"room name alias version:i due:i expires:i value:b code:b",
		).with("code", "room name alias version due expires value"),
		define(
			"kept",
			"bucket name",
			"bucket name value:b expires:i code:b",
		).with("code", "bucket name value expires"),
		define(
			"deliveries",
			"id",
			"id:i tenant target event subject payload state attempt:i run_at:i owner problem created:i code:b",
		).
			with("code", "tenant target event subject payload created").
			counts("id"),
	}
}

type header struct {
	Format string `json:"format"`
	Schema int    `json:"schema"`
}

// trailer is the last line of a backup. Sum is the SHA-256 of all bytes before that line.
type trailer struct {
	Rows map[string]int64 `json:"rows"`
	Sum  string           `json:"sha256"`
}

// Backup writes one line for every row. Two backups of the same state are equal, whichever
// engine wrote them.
func (s *Store) Backup(ctx context.Context, w io.Writer) error {
	x, err := s.eng.Snapshot(ctx)
	if err != nil {
		return unavailable("backup", err)
	}
	defer x.Rollback()
	sum := sha256.New()
	buffer := bufio.NewWriterSize(io.MultiWriter(w, sum), 1<<16)
	out := json.NewEncoder(buffer)
	out.SetEscapeHTML(false)
	if err := out.Encode(header{backupFormat, backupSchema}); err != nil {
		return fmt.Errorf("backup: %w", err)
	}
	end := trailer{Rows: map[string]int64{}}
	for _, t := range tables() {
		if end.Rows[t.name], err = t.dump(ctx, x, out); err != nil {
			return err
		}
	}
	if err := buffer.Flush(); err != nil {
		return fmt.Errorf("backup: %w", err)
	}
	end.Sum = hex.EncodeToString(sum.Sum(nil))
	if err := errors.Join(out.Encode(end), buffer.Flush()); err != nil {
		return fmt.Errorf("backup: %w", err)
	}
	return nil
}

func (t table) dump(ctx context.Context, x Tx, out *json.Encoder) (n int64, err error) {
	rows, err := x.Query(ctx, t.selected()+" ORDER BY "+strings.Join(t.key, ", "))
	if err != nil {
		return 0, unavailable("backup", err)
	}
	defer rows.Close()
	for ; rows.Next(); n++ {
		row, err := t.scan(rows)
		if err != nil {
			return n, unavailable("backup", err)
		}
		if err := out.Encode(append([]any{t.name}, row...)); err != nil {
			return n, fmt.Errorf("backup: %w", err)
		}
	}

	return n, unavailable("backup", rows.Err())
}

func (t table) selected() string {
	return "SELECT " + strings.Join(t.names(), ", ") + " FROM " + t.name
}

// scan reads a row with all columns of the table. Values are strings, int64 and bytes, as
// backups and codes need them.
func (t table) scan(r Rows) ([]any, error) {
	row, dest := make([]any, len(t.columns)), make([]any, len(t.columns))
	for i := range row {
		dest[i] = &row[i]
	}
	err := r.Scan(dest...)
	for i, v := range row {
		if b, ok := v.([]byte); ok && b == nil {
			row[i] = []byte{} // as drivers may return none
		}
	}

	return row, err
}

func refuse(format string, args ...any) error {
	return verdict{fmt.Errorf("%w: %w", store.ErrBackup, fmt.Errorf(format, args...))}
}

func empty(ctx context.Context, x Tx) error {
	for _, t := range tables() {
		if t.name == "periods" {
			continue
		}
		_, found, err := first(ctx, x, scanInt, "SELECT 1 FROM "+t.name+" LIMIT 1")
		if err != nil {
			return err
		}
		if found {
			return refuse("the store is not empty: table %s has rows: restore into a new database", t.name)
		}
	}

	return nil
}

// count moves the database's counters past the restored rows.
func (s *Store) count(ctx context.Context, x Tx) error {
	for _, t := range tables() {
		if t.counter != "" && s.d.Sequence != "" {
			x.Queue(do(strings.NewReplacer("{{table}}", t.name, "{{column}}", t.counter).Replace(s.d.Sequence)))
		}
	}
	return x.Flush(ctx)
}

type backupReader struct {
	r    *bufio.Reader
	sum  hash.Hash
	n    int
	rows map[string]int64
}

// next returns the next line without its line end.
func (b *backupReader) next() ([]byte, error) {
	var out []byte
	for {
		part, err := b.r.ReadSlice('\n')
		out = append(out, part...)
		switch {
		case err == nil:
			b.n++
			return out, nil
		case err == io.EOF && len(out) == 0:
			return nil, refuse(
				"it ends after line %d, without the line that closes a backup: it was cut off",
				b.n,
			)
		case err == io.EOF:
			return nil, refuse("line %d is cut off", b.n+1)
		case !errors.Is(err, bufio.ErrBufferFull):
			return nil, verdict{fmt.Errorf("read the backup: %w", err)}
		case len(out) > longestLine:
			return nil, refuse("line %d is longer than %d bytes", b.n+1, longestLine)
		}
	}
}

func (b *backupReader) restore(ctx context.Context, x Tx) error {
	if err := b.header(); err != nil {
		return err
	}
	known := map[string]table{}
	for _, t := range tables() {
		known[t.name] = t
		b.rows[t.name] = 0
	}
	for {
		text, err := b.next()
		if err != nil {
			return err
		}
		if bytes.HasPrefix(text, []byte("{")) {
			return b.trailer(text)
		}
		b.sum.Write(text)
		if err := b.row(ctx, x, known, text); err != nil {
			return err
		}
	}
}

func (b *backupReader) header() error {
	text, err := b.next()
	if err != nil {
		return err
	}
	b.sum.Write(text)
	var h header
	switch err := json.Unmarshal(text, &h); {
	case err != nil || h.Format != backupFormat:
		return refuse("it does not begin as a backup does (%s)", backupFormat)
	case h.Schema != backupSchema:
		return refuse(
			"it is of schema %d and this version of assent has %d: restore it with the version that made it, then "+
				"open that database with this one",
			h.Schema,
			backupSchema,
		)
	}

	return nil
}

func (b *backupReader) row(ctx context.Context, x Tx, known map[string]table, text []byte) error {
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	var l []any // the name of the table, then its columns
	if err := decoder.Decode(&l); err != nil {
		return refuse("line %d is not JSON: %w", b.n, err)
	}
	name, _ := append(l, nil)[0].(string)
	t, ok := known[name]
	if !ok || len(l) != len(t.columns)+1 {
		return refuse("line %d is not a row of a table that this version has", b.n)
	}
	args := make([]any, len(t.columns))
	for i, c := range t.columns {
		if args[i], ok = c.arg(l[i+1]); !ok {
			return refuse("line %d: column %s of table %s is of the wrong kind", b.n, c.name, name)
		}
	}
	b.rows[name]++
	x.Queue(do(t.insert(), args...))
	if b.n%restoreStep == 0 {
		return x.Flush(ctx)
	}
	return nil
}

func (t table) insert() string {
	return "INSERT INTO " + t.name + " (" + strings.Join(t.names(), ", ") + ") VALUES (" +
		marks(1, len(t.columns)) + ")"
}

// arg converts a value in a backup to the argument of a statement. It returns false if the
// type is wrong.
func (c column) arg(v any) (any, bool) {
	switch v := v.(type) {
	case nil:
		return nil, true
	case json.Number:
		n, err := v.Int64()
		return n, err == nil && c.kind == whole
	case string:
		if c.kind != bytea {
			return v, c.kind == text
		}
		b, err := base64.StdEncoding.DecodeString(v)
		return b, err == nil
	}

	return nil, false
}

// trailer parses the trailer and compares it with the rows that were read.
func (b *backupReader) trailer(text []byte) error {
	var end trailer
	if err := json.Unmarshal(text, &end); err != nil {
		return refuse("line %d is not JSON: %w", b.n, err)
	}
	if end.Sum != hex.EncodeToString(b.sum.Sum(nil)) {
		return refuse("its checksum is another: it was changed")
	}
	for name, n := range b.rows {
		if end.Rows[name] != n {
			return refuse("it has %d rows of table %s, and says %d", n, name, end.Rows[name])
		}
	}
	if _, err := b.r.ReadByte(); err != io.EOF {
		return refuse("something follows after the line that closes it")
	}
	return nil
}
