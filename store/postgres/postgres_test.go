package postgres_test

import (
	"os"
	"testing"

	"github.com/assent-dev/assent/store/postgres"
	"github.com/assent-dev/assent/store/postgres/pgtest"
)

func TestMain(m *testing.M) { os.Exit(pgtest.Main(m)) }

func TestX(t *testing.T) {
	s, err := postgres.Open(t.Context(), pgtest.New(t), postgres.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Ping(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}
