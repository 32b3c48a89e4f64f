package audit

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/assent-dev/assent/approval/ledger"
	"github.com/assent-dev/assent/cmd/internal/config"
	"github.com/assent-dev/assent/cmd/internal/remote"
	"github.com/assent-dev/assent/cmd/internal/term"
)

// checkpoints finds the older checkpoints of a log. It is nil if none are available.
type checkpoints func(origin string) ([][]byte, error)

// outside collects checkpoints from other sources than the export.
func (a commands) outside(ctx context.Context, f verifyFlags) (checkpoints, error) {
	if len(f.since) == 0 && f.witness == "" {
		return nil, nil
	}
	var kept [][]byte
	for _, file := range f.since {
		text, err := term.ReadFile(file, nil)
		if err != nil {
			return nil, fmt.Errorf("--since: %w", err)
		}
		kept = append(kept, text)
	}

	return func(origin string) ([][]byte, error) {
		if f.witness == "" {
			return kept, nil
		}
		text, err := a.askWitness(ctx, f, origin)
		if err != nil {
			return nil, fmt.Errorf("--witness: %w", err)
		}
		seen, err := witnessed(text, origin)
		if err != nil {
			return nil, fmt.Errorf("--witness: %s: %w", f.witness, err)
		}
		return append(kept, seen...), nil
	}, nil
}

const (
	witnessTime = 15 * time.Second
	mostWitness = 64 << 20 // bytes
)

// askWitness reads a file, or the document at an address. An address without a path is that of
// another assent server.
func (a commands) askWitness(ctx context.Context, f verifyFlags, origin string) ([]byte, error) {
	u, err := url.Parse(f.witness)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" {
		return term.ReadFile(f.witness, nil)
	}
	if remote.Exposed(f.witness) {
		return nil, errors.New("expected https: over plain http anybody on the way could change it")
	}
	if strings.Trim(u.Path, "/") == "" {
		u.Path, u.RawQuery = "/v1/witness", url.Values{"log": {origin}}.Encode()
	}
	ctx, cancel := context.WithTimeout(ctx, witnessTime)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return nil, err
	}
	if f.witnessToken != "" {
		token, err := term.ReadFile(f.witnessToken, nil)
		if err != nil {
			return nil, err
		}
		r.Header.Set("Authorization", "Bearer "+strings.TrimSpace(string(token)))
	}

	res, err := http.DefaultClient.Do(r)
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	text, err := io.ReadAll(io.LimitReader(res.Body, mostWitness))
	if err == nil && res.StatusCode != http.StatusOK {
		err = fmt.Errorf("it answers %s", res.Status)
	}
	return text, err
}

// witnessed finds the checkpoints of a log in a witness's document: a single signed note, a JSON
// object with one, or one line of JSON for each.
func witnessed(text []byte, origin string) ([][]byte, error) {
	if !bytes.HasPrefix(bytes.TrimSpace(text), []byte("{")) {
		return [][]byte{text}, nil
	}
	var out [][]byte
	decoder := json.NewDecoder(bytes.NewReader(text))
	for decoder.More() {
		var line struct {
			Checkpoint string `json:"checkpoint"`
		}
		if err := decoder.Decode(&line); err != nil {
			return nil, fmt.Errorf("it holds neither checkpoints nor lines of JSON with one each: %w", err)
		}
		if of, _, _ := strings.Cut(line.Checkpoint, "\n"); of == origin {
			out = append(out, []byte(line.Checkpoint))
		}
	}

	if len(out) == 0 {
		return nil, fmt.Errorf("it holds no checkpoint of the log %s", origin)
	}
	return out, nil
}

// anchors reads the beginning of an export to determine its log, and finds the older checkpoints of
// that log.
func anchors(r *bufio.Reader, outside checkpoints) (io.Reader, [][]byte, error) {
	if outside == nil {
		return r, nil, nil
	}
	var line []byte
	for {
		part, err := r.ReadSlice('\n')
		if line = append(line, part...); err == nil || errors.Is(err, io.EOF) || len(line) > maxHeader {
			break
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return nil, nil, err
		}
	}

	var header struct {
		Origin string `json:"origin"`
	}
	if json.Unmarshal(line, &header) != nil { // verifying says what is wrong with it
		header.Origin = ledger.Origin(config.DefaultTenant)
	}
	since, err := outside(cmp.Or(header.Origin, ledger.Origin(config.DefaultTenant)))
	return io.MultiReader(bytes.NewReader(line), r), since, err
}

// maxHeader limits the first line of an export in bytes.
const maxHeader = 1 << 20
