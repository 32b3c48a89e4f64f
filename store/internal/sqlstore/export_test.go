package sqlstore

import "context"

// MigrateMore does what a later version with one more step does when it opens the store.
func (s *Store) MigrateMore(ctx context.Context, name, text string) error {
	all := embedded()
	return s.migrate(ctx, append(all, migration{version: int64(len(all) + 1), name: name, text: text, checksum: name}))
}
