package sqlstore

import (
	"context"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/assent-dev/assent/store"
)

//go:embed migrations/*.sql
var files embed.FS

// migration is one step of the schema. Its checksum is computed before the dialect's words
// are put in, so it is the same for every database.
type migration struct {
	version  int64
	name     string
	text     string
	checksum string
}

// embedded returns the migrations of this version, in order. Their numbers begin at 1
// without gaps.
func embedded() []migration {
	names, _ := fs.Glob(files, "migrations/*.sql") // the pattern is right
	slices.Sort(names)
	out := make([]migration, len(names))
	for i, name := range names {
		text, _ := files.ReadFile(name)
		sum := sha256.Sum256(text)
		out[i] = migration{
			int64(i + 1),
			strings.TrimPrefix(name, "migrations/"),
			string(text),
			hex.EncodeToString(sum[:]),
		}
	}

	return out
}

// statements returns the migration's statements with the dialect's words.
func (m migration) statements(d Dialect) []string {
	var words []string
	for name, word := range d.Types {
		words = append(words, "{{"+name+"}}", word)
	}
	var out []string
	for part := range strings.SplitSeq(uncommented(strings.NewReplacer(words...).Replace(m.text)), ";\n") {
		if part = strings.TrimSpace(part); part != "" {
			out = append(out, strings.TrimSuffix(part, ";"))
		}
	}
	return out
}

func uncommented(sql string) string {
	lines := slices.DeleteFunc(strings.Split(sql, "\n"), func(line string) bool {
		return strings.HasPrefix(line, "--")
	})
	return strings.Join(lines, "\n")
}

// migrate brings the database up to date in one transaction, under a lock. It returns an
// error if the database has other, newer or missing steps.
func (s *Store) migrate(ctx context.Context, all []migration) error {
	err := s.repeat(ctx, "open the database", func(x Tx) error {
		if s.d.Migrate != "" {
			x.Queue(do(s.d.Migrate))
		}
		done, err := s.applied(ctx, x)
		if err != nil {
			return err
		}
		if err := compare(done, all); err != nil {
			return verdict{err}
		}
		s.schemaBefore, s.schema = len(done), len(all)
		for _, m := range all[len(done):] {
			if err := s.apply(ctx, x, m); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil && strings.Contains(err.Error(), "SQLSTATE 42501") { // of PostgreSQL: insufficient privilege
		return fmt.Errorf(
			"%w: this version of assent changes the tables, which this role may not do: run `assent migrate` once with "+
				"the role that owns them: %w",
			store.ErrSchema, err,
		)
	}
	if err != nil {
		return err
	}
	return s.inspect(ctx)
}

func (s *Store) applied(ctx context.Context, x Tx) ([]migration, error) {
	there, _, err := first(
		ctx,
		x,
		scanInt,
		"SELECT CASE WHEN "+s.d.HasTable+" THEN 1 ELSE 0 END",
		"assent_migrations",
	)
	if err != nil {
		return nil, err
	}
	if there == 1 { // a user without the right to create tables doesn't need it then
		return collect(ctx, x, scanMigration, selectMigrations)
	}
	create := "CREATE TABLE IF NOT EXISTS assent_migrations (version {{int}} NOT NULL PRIMARY KEY, name {{text}} " +
		"NOT NULL, checksum {{text}} NOT NULL) {{strict}}"
	x.Queue(do(migration{text: create}.statements(s.d)[0]))
	if err := x.Flush(ctx); err != nil {
		return nil, err
	}
	return collect(ctx, x, scanMigration, selectMigrations)
}

const selectMigrations = "SELECT version, name, checksum FROM assent_migrations ORDER BY version"

func scanMigration(r Rows) (m migration, err error) {
	return m, r.Scan(&m.version, &m.name, &m.checksum)
}

// compare returns an error if the steps done are not the first steps of all.
func compare(done, all []migration) error {
	for i, m := range done {
		switch {
		case i >= len(all):
			return fmt.Errorf(
				"%w: it is at step %d (%s), and this version knows %d steps: use the newer version of assent that "+
					"wrote it",
				store.ErrSchema,
				m.version,
				m.name,
				len(all),
			)
		case m.version != all[i].version:
			return fmt.Errorf("%w: step %d is missing: restore a backup", store.ErrSchema, all[i].version)
		case m.checksum != all[i].checksum:
			return fmt.Errorf(
				"%w: step %d (%s) is not the one that this version has: it was changed by hand, or made by a build "+
					"from before the first release: back it up with that build, and restore the backup into an empty "+
					"database",
				store.ErrSchema,
				m.version,
				m.name,
			)
		}
	}

	return nil
}

func (s *Store) apply(ctx context.Context, x Tx, m migration) error {
	for _, sql := range m.statements(s.d) {
		x.Queue(do(sql))
		if err := x.Flush(ctx); err != nil {
			err = fmt.Errorf("step %d (%s): %w", m.version, m.name, err)
			if strings.Contains(err.Error(), "already exists") {
				err = verdict{fmt.Errorf("%w: %w: the tables are of something else, or of a half-applied migration: "+
					"use an empty database or restore a backup", store.ErrSchema, err)}
			}
			return err
		}
	}

	x.Queue(
		do(
			"INSERT INTO assent_migrations (version, name, checksum) VALUES ($1, $2, $3)",
			m.version,
			m.name,
			m.checksum,
		),
	)
	return x.Flush(ctx)
}

// inspect checks that every table exists with its columns, whatever the table of migrations
// says.
func (s *Store) inspect(ctx context.Context) error {
	for _, t := range append(tables(), keysTable()) {
		rows, err := s.eng.Query(ctx, "SELECT "+strings.Join(t.names(), ", ")+" FROM "+t.name+" LIMIT 0")
		if err == nil {
			rows.Close()
			err = rows.Err()
		}
		switch {
		case err == nil:
		case s.eng.Class(err) == Broken && strings.Contains(err.Error(), "no such") ||
			strings.Contains(err.Error(), "does not exist"):
			return fmt.Errorf("%w: table %s: %w: restore a backup", store.ErrSchema, t.name, err)
		default:
			return unavailable("open the database", err)
		}
	}

	return nil
}
