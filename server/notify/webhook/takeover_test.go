package webhook_test

import (
	"context"
	"crypto/rand"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/approval/ledger"
	"github.com/assent-dev/assent/internal/guard"
	"github.com/assent-dev/assent/internal/must"
	"github.com/assent-dev/assent/server/notify"
	"github.com/assent-dev/assent/server/notify/webhook"
	"github.com/assent-dev/assent/store"
	"github.com/assent-dev/assent/store/sqlite"
)

// The environment variables of a copy of this test binary that only runs a worker.
const (
	childFile = "ASSENT_TEST_WORKER_FILE"
	childURL  = "ASSENT_TEST_WORKER_URL"
)

func TestMain(m *testing.M) {
	if file := os.Getenv(childFile); file != "" {
		if err := child(file, os.Getenv(childURL)); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}

	os.Exit(m.Run())
}

// child sends due deliveries as another process.
func child(file, to string) error {
	s, err := sqlite.Open(context.Background(), file, sqlite.Options{})
	if err != nil {
		return err
	}
	w, err := worker(s, to, time.Now)
	if err != nil {
		return err
	}
	w.Once(context.Background())
	return s.Close()
}

func worker(s store.Store, to string, now func() time.Time) (*notify.Worker, error) {
	sender, err := webhook.New(webhook.Config{
		URL:     to,
		Secrets: []string{vectorSecret},
		Guard:   guard.Guard{Loopback: true},
		Timeout: time.Minute,
		Now:     now,
	})
	if err != nil {
		return nil, err
	}
	return notify.NewWorker(notify.WorkerConfig{
		Outbox:  s,
		Now:     now,
		Targets: []notify.Target{{Name: "webhook:ops", Sender: sender, Timeout: 30 * time.Second}},
	})
}

// TestKilledWorkerIsTakenOver checks that if a process is killed in the middle of an
// attempt, another process sends the same message with the same id.
func TestKilledWorkerIsTakenOver(t *testing.T) {
	ids := make(chan string, 4)
	var calls atomic.Int32
	release := make(chan struct{})
	receiver := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		ids <- r.Header.Get(webhook.HeaderID)
		if calls.Add(1) == 1 {
			<-release
		}
	}))
	defer receiver.Close()
	defer close(release)
	file := filepath.Join(t.TempDir(), "assent.db")
	s := queued(t, file)

	program, err := os.Executable()
	must.Do(t, err)
	process := exec.CommandContext(t.Context(), program)
	process.Env = append(os.Environ(), childFile+"="+file, childURL+"="+receiver.URL)
	process.Stderr = os.Stderr
	must.Do(t, process.Start())
	id := <-ids
	must.Do(t, process.Process.Kill())
	_ = process.Wait()

	if n := attempts(t, s, receiver.URL, time.Second); n != 0 {
		t.Errorf("%d attempts were made while the dead process had its lease", n)
	}
	if n := attempts(t, s, receiver.URL, 2*time.Minute); n != 1 {
		t.Fatalf("after the lease %d attempts were made", n)
	}
	if again := <-ids; again != id {
		t.Errorf("sent as %s, then as %s", id, again)
	}
	jobs, err := s.Jobs(t.Context(), "acme", store.Sent, 10)
	if err != nil || len(jobs) != 1 || jobs[0].Attempt != 2 {
		t.Errorf("got %+v, %v", jobs, err)
	}
}

func attempts(t *testing.T, s store.Store, to string, after time.Duration) int {
	t.Helper()
	w, err := worker(s, to, func() time.Time { return time.Now().Add(after) })
	must.Do(t, err)
	return w.Once(t.Context())
}

// queued returns a store with one delivery.
func queued(t *testing.T, file string) store.Store {
	t.Helper()
	s, err := sqlite.Open(t.Context(), file, sqlite.Options{})
	must.Do(t, err)
	t.Cleanup(func() { _ = s.Close() })
	record, err := ledger.Entry{
		Time:    time.Now(),
		Tenant:  "acme",
		Type:    approval.EventOpened,
		Subject: "apr_1",
	}.Seal(rand.Reader)
	must.Do(t, err)
	err = s.Update(t.Context(), "acme", func(tx approval.Tx) error {
		tx.Append(record, approval.Delivery{
			Target:  "webhook:ops",
			Event:   approval.EventOpened,
			Subject: "apr_1",
			Payload: "{}",
		})
		return nil
	})
	must.Do(t, err)
	return s
}
