package sqlstore

import (
	"context"
	"crypto/hmac"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// renewStep is the number of rows that are read at once. Documents may have megabytes.
const renewStep = 32

// reseal is store.Rotation.Reseal.
type reseal func(room, key string, value []byte) ([]byte, error)

// renew checks the codes of all rows of one period and replaces them by those of another.
// If from is nil, it checks nothing. Its time and its writes are linear in the rows. The
// caller must exclude other writers for the whole transaction.
func (s *Store) renew(ctx context.Context, x Tx, from, to *authenticator, values reseal) error {
	for _, t := range tables() {
		if len(t.codes) == 0 || t.name == "periods" {
			continue
		}
		if err := s.renewTable(ctx, x, t, from, to, values); err != nil {
			return err
		}
	}

	return x.Flush(ctx)
}

func (s *Store) renewTable(ctx context.Context, x Tx, t table, from, to *authenticator, values reseal) error {
	part := t.part()
	var after []any
	for {
		rows, err := collect(ctx, x, part.scan, part.page(after), after...)
		if err != nil {
			return err
		}
		for _, row := range rows {
			if err := s.renewRow(x, part, row, from, to, values); err != nil {
				return err
			}
		}
		if len(rows) < renewStep {
			return nil
		}
		after = part.pick(rows[len(rows)-1], part.key)
	}
}

func (s *Store) renewRow(x Tx, t table, row []any, from, to *authenticator, values reseal) error {
	key := t.pick(row, t.key)
	for _, c := range t.codes {
		found, _ := t.pick(row, []string{c.column})[0].([]byte)
		if from != nil && !hmac.Equal(found, from.code(c.label, t.pick(row, c.covers)...)) {
			return s.tampered("", fmt.Sprint(t.name, " ", key), misfit)
		}
	}

	var set []string
	var args []any
	put := func(column string, v any) {
		args = append(args, v)
		set = append(set, column+" = $"+strconv.Itoa(len(args)))
	}
	if t.name == "records" && values != nil {
		if err := t.reseal(row, values); err != nil {
			return verdict{err}
		}
		put("value", t.pick(row, []string{"value"})[0])
	}

	for _, c := range t.codes {
		put(c.column, to.code(c.label, t.pick(row, c.covers)...))
	}
	where := make([]string, len(key))
	for i, name := range t.key {
		where[i] = name + " = $" + strconv.Itoa(len(args)+i+1)
	}
	x.Queue(
		one(
			"UPDATE "+t.name+" SET "+strings.Join(set, ", ")+" WHERE "+strings.Join(where, " AND "),
			append(args, key...)...),
	)
	return nil
}

// reseal puts the new value of a record into its row.
func (t table) reseal(row []any, values reseal) error {
	at := slices.IndexFunc(t.columns, func(c column) bool { return c.name == "value" })
	key := t.pick(row, t.key)
	room, _ := key[0].(string)
	name, _ := key[1].(string)
	value, _ := row[at].([]byte)
	next, err := values(room, name, value)
	if err != nil {
		return fmt.Errorf("record %s of %s: %w", name, room, err)
	}
	if next == nil {
		next = []byte{} // and not NULL
	}
	row[at] = next
	return nil
}

// part returns the table with only the columns that codes need.
func (t table) part() table {
	used := slices.Clone(t.key)
	for _, c := range t.codes {
		used = append(append(used, c.covers...), c.column)
	}
	t.columns = slices.DeleteFunc(slices.Clone(t.columns), func(c column) bool {
		return !slices.Contains(used, c.name)
	})
	return t
}

// page returns the statement that reads the rows after a key.
func (t table) page(after []any) string {
	sql, key := t.selected(), strings.Join(t.key, ", ")
	if after != nil {
		sql += " WHERE (" + key + ") > (" + marks(1, len(after)) + ")"
	}
	return sql + " ORDER BY " + key + " LIMIT " + strconv.Itoa(renewStep)
}

// pick returns the values of the named columns.
func (t table) pick(row []any, names []string) []any {
	out := make([]any, len(names))
	for i, name := range names {
		out[i] = row[slices.IndexFunc(t.columns, func(c column) bool { return c.name == name })]
	}
	return out
}
