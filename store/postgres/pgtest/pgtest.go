// Package pgtest gives tests a PostgreSQL server of their own. A test
// binary that needs one has
//
//	func TestMain(m *testing.M) { os.Exit(pgtest.Main(m)) }
//
// and each of its tests asks for a place of its own with New. The
// server listens on a socket in a temporary folder only, and syncs to
// disk as one in production does. With ASSENT_TEST_POSTGRES set to a
// URL, they are made there instead; with `pool` among its parameters
// the places are databases, since poolers take no search_path.
package pgtest

import (
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/assent-dev/assent/internal/testwait"
)

// Env names the server that tests use.
const Env = "ASSENT_TEST_POSTGRES"

// own is set if Main started the server.
const own = "ASSENT_TEST_POSTGRES_OWN"

const missing = "no PostgreSQL server found in /usr/lib/postgresql/*/bin or on the PATH: apt-get install " +
	"postgresql, or set " + Env + " to the URL of one"

// Main runs the tests of a binary with a server, and returns the exit code.
func Main(m *testing.M) int {
	if os.Getenv(Env) != "" {
		return m.Run()
	}
	s, err := Start()
	if err != nil {
		fmt.Fprintln(os.Stderr, "pgtest:", err) // every test that asks for a database fails with this
		_ = os.Setenv(Env, "failed: "+err.Error())
		return m.Run()
	}
	defer s.Stop()
	_ = os.Setenv(Env, s.URL) // not a package variable, which would be global state
	_ = os.Setenv(own, "1")
	return m.Run()
}

// New makes a schema for one test and returns its URL. A schema is quicker to make than a
// database and as separate.
func New(t testing.TB) string {
	t.Helper()
	server := os.Getenv(Env)
	if server == "" {
		t.Fatal("pgtest: the test binary has no TestMain that calls pgtest.Main")
	}
	if why, failed := strings.CutPrefix(server, "failed: "); failed {
		t.Fatal("pgtest: " + why)
	}
	u, err := url.Parse(server)
	if err != nil {
		t.Fatal("pgtest: " + Env + " is no URL")
	}
	name, q := "assent_"+strings.ToLower(rand.Text()), u.Query()
	if q.Has("pool") {
		q.Del("pool")
		u.RawQuery = q.Encode()
		server, u.Path = u.String(), "/"+name
		execute(t, server, "CREATE DATABASE "+name)
		t.Cleanup(func() {
			execute(t, server, "DROP DATABASE "+name+" WITH (FORCE)")
		})
		return u.String()
	}

	execute(t, server, "CREATE SCHEMA "+name)
	if os.Getenv(own) == "" { // a server of ours is removed as a whole
		t.Cleanup(func() { execute(t, server, "DROP SCHEMA "+name+" CASCADE") })
	}
	q.Set("search_path", name)
	u.RawQuery = q.Encode()
	return u.String()
}

// Exec runs statements in the database or schema of a URL from New.
func Exec(t testing.TB, where, statements string) {
	t.Helper()
	execute(t, where, statements)
}

func execute(t testing.TB, server, sql string) {
	t.Helper()
	ctx := testwait.Context(t)
	conn, err := pgx.Connect(ctx, server)
	if err != nil {
		t.Fatal(err)
	}
	_, err = conn.Exec(ctx, sql)
	if closed := conn.Close(ctx); err != nil || closed != nil {
		t.Fatal(err, closed)
	}
}

// Server is a running server. It ends with Stop, or when this process ends.
type Server struct {
	URL    string // of its first database, as its owner
	folder string
	bin    string
	alive  io.Closer
	cmd    *exec.Cmd
}

// Start makes a server in a temporary folder and starts it.
func Start() (*Server, error) {
	bin, err := find()
	if err != nil {
		return nil, err
	}
	folder, err := os.MkdirTemp("", "pgtest")
	if err != nil {
		return nil, err
	}
	s := &Server{
		folder: folder,
		bin:    bin,
		URL:    "postgres://assent@/postgres?host=" + url.QueryEscape(folder),
	}
	if err := s.create(); err != nil {
		_ = os.RemoveAll(folder)
		return nil, err
	}
	if err := s.Restart(); err != nil {
		_ = os.RemoveAll(folder)
		return nil, err
	}
	return s, nil
}

func find() (string, error) {
	all, err := filepath.Glob("/usr/lib/postgresql/*/bin/initdb")
	if err != nil {
		return "", err
	}
	if len(all) > 0 {
		return filepath.Dir(slices.Max(all)), nil
	}
	if path, err := exec.LookPath("initdb"); err == nil {
		return filepath.Dir(path), nil
	}
	return "", fmt.Errorf("%s", missing)
}

// as runs a command as the user postgres if we are root, because the server refuses to run
// as root.
func as(name string, args ...string) *exec.Cmd {
	if os.Getuid() == 0 {
		return exec.Command("runuser", append([]string{"-u", "postgres", "--", name}, args...)...)
	}
	return exec.Command(name, args...)
}

func (s *Server) create() error {
	if os.Getuid() == 0 {
		if out, err := exec.Command("chown", "postgres", s.folder).CombinedOutput(); err != nil {
			return fmt.Errorf("give the folder to the user postgres: %w: %s", err, out)
		}
	}
	out, err := as(
		filepath.Join(s.bin, "initdb"),
		"-D",
		filepath.Join(s.folder, "data"),
		"-U",
		"assent",
		"-A",
		"trust",
		"-E",
		"UTF8",
		"--locale=C.UTF-8",
		"--no-sync",
	).CombinedOutput()
	if err != nil {
		return fmt.Errorf("initdb: %w: %s", err, out)
	}
	return nil
}

// script stops the server when its input ends, which happens whenever this process ends.
const script = `"$@" & read -r _; kill -INT $! 2>/dev/null; wait $!`

// Restart starts the server after Halt, and returns when it accepts connections.
func (s *Server) Restart() error {
	s.cmd = as(
		"sh",
		"-c",
		script,
		"sh",
		filepath.Join(s.bin, "postgres"),
		"-D",
		filepath.Join(s.folder, "data"),
		"-k",
		s.folder,
		"-c",
		"listen_addresses=",
		"-c",
		"max_connections=200",
		"-c",
		"logging_collector=off",
		"-c",
		"log_min_messages=fatal",
		"-c",
		"log_min_error_statement=panic",
	)
	log, err := os.Create(filepath.Join(s.folder, "log"))
	if err != nil {
		return err
	}
	defer log.Close()
	s.cmd.Stdout, s.cmd.Stderr = log, log
	if s.alive, err = s.cmd.StdinPipe(); err != nil {
		return err
	}
	if err := s.cmd.Start(); err != nil {
		return fmt.Errorf("start postgres: %w", err)
	}
	return s.wait()
}

func (s *Server) wait() error {
	ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		conn, err := pgx.Connect(ctx, s.URL)
		if err == nil {
			return conn.Close(ctx)
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			s.Halt()
			text, _ := os.ReadFile(filepath.Join(s.folder, "log"))
			return fmt.Errorf("postgres does not answer: %w: %s", err, text)
		}
	}
}

// Halt stops the server at once and cuts all connections. Restart starts it again with what
// was committed.
func (s *Server) Halt() {
	_ = s.alive.Close()
	_ = s.cmd.Wait()
}

// Stop stops the server and removes it.
func (s *Server) Stop() {
	s.Halt()
	_ = os.RemoveAll(s.folder)
}
