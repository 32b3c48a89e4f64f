package main

import (
	"bufio"
	"go/ast"
	"go/parser"
	"go/token"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/internal/must"
	"github.com/assent-dev/assent/internal/testwait"
)

// wayToRead is an entrance by which people read requests, what the ledger
// says about them, and figures.
type wayToRead struct {
	name  string
	sites []string // functions of the product that read the store for it
	path  string   // of the inbox, or of the API if it begins with /v1; {id} and {index} are the request's
	args  []string // of a command instead
	shows string   // what readers see of the request; "": its id or arguments
}

func waysToRead() []wayToRead {
	return []wayToRead{
		{name: "HTTP, a request", path: "/v1/requests/{id}"},
		{name: "HTTP, a history", path: "/v1/requests/{id}/history", shows: `"leaf"`,
			sites: []string{"server.requestOps.history", "server.requestOps.nextEntry"}},
		{name: "HTTP, the list", path: "/v1/requests"},
		{name: "HTTP, the list of a group", path: "/v1/requests?group=ops"},
		{name: "HTTP, grants", path: "/v1/grants", sites: []string{"server.adminOps.listGrants"}},
		{name: "HTTP, a grant", path: "/v1/grants/grt_{id}", sites: []string{"server.adminOps.readableGrant"}},
		{name: "HTTP, figures", path: "/v1/stats", shows: `"ben"`, sites: []string{"server.adminOps.stats"}},
		{
			name:  "HTTP, deliveries",
			path:  "/v1/deliveries?state=sent",
			sites: []string{"server.adminOps.listDeliveries"},
		},
		{name: "HTTP, an entry", path: "/v1/audit/proof/{index}", shows: `"leaf"`,
			sites: []string{"server.auditOps.proof"}},
		{name: "HTTP, the export", path: "/v1/audit/export", sites: []string{"server.auditOps.exportAll"}},
		{name: "HTTP, events", path: "/v1/events?after=-1", sites: []string{"server.streamOps.catchUp"}},
		{name: "the command line, a request", args: []string{"show", "{id}"}},
		{name: "the command line, the list", args: []string{"list", "--state", "approved"}},
		{name: "the inbox, a request", path: "/requests/{id}",
			sites: []string{"server/inbox.requestPages.readPast", "server/inbox.requestPages.readHistory"}},
		{name: "the inbox, all open", path: "/?tab=open"},
		{name: "the inbox, a part of a list", path: "/queue?tab=open"},
		{name: "the inbox, decided", path: "/?tab=decided", shows: "{decided}"},
		{name: "the inbox, the ledger", path: "/ledger", shows: "request_approved", sites: []string{
			"server/inbox.recordPages.ledger", "server/inbox.(*visit).laterThan",
		}},
		{name: "the inbox, a part of the ledger", path: "/ledger?subject={id}", shows: "request_approved"},
		{name: "the inbox, grants", path: "/grants", sites: []string{"server/inbox.adminPages.grants"}},
		{name: "the inbox, deliveries", path: "/deliveries?state=sent",
			sites: []string{"server/inbox.adminPages.deliveries"}},
		{name: "the inbox, activity", path: "/activity?days=1", shows: "ben",
			sites: []string{"server/inbox.recordPages.activity"}},
	}
}

// readNothing lists functions that read the store without showing anything to people who may not
// read it, each with the reason.
func readNothing() map[string]string {
	const (
		size    = "reads the size of a document, to make room for it"
		numbers = "counts for the figures of the server, which name nobody"
		posted  = "writes to the configured channel, where its members read it"
		guarded = "what it reads was read by who may before"
	)
	return map[string]string{
		"server.(*exchange).roomFor":               size,
		"server.requestOps.own":                    "a runtime's own requests",
		"server.(*Server).add":                     numbers,
		"server/notify/slack.(*App).reads":         guarded,
		"server.requestOps.with":                   guarded,
		"server/inbox.queuePages.roomForBatch":     size,
		"server/inbox.requestPages.roomForRequest": size,
		"server/inbox.recordPages.readCalls":       "the visitor's own calls, and whether their questions are there",
		"server/inbox.adminPages.revoke":           "shows nothing; a grant that may not be read is not found",
		"server/inbox.recordPages.writeExport":     "for administrators only",
		"server/notify/slack.(*App).showsAll":      guarded,
		"server/notify/slack.(*App).ask":           "opens a form for who may answer; see TestSlackOpensNoFormForOthers",
		"server/notify/slack.(*App).refresh":       posted,
		"server/notify/slack.(*App).show":          posted,
		"server/notify/slack.(*App).Send":          posted,
	}
}

// storeReads are the calls that read data that only some people may read.
var storeReads = regexp.MustCompile(
	`(?:[sS]tore\.(?:Requests?|Summaries|Similar|Grants?|Votes|History|Entries|Leaves|Jobs|Heads)|` +
		`(?:[sS]ervice|Requests)\.(?:Request|Own))\(`)

// readSites returns the functions of the server that read the store.
func readSites(t *testing.T) []string {
	t.Helper()
	var out []string
	for _, folder := range []string{"server", "server/inbox", "server/notify/slack", "cmd/assent"} {
		files, err := filepath.Glob("../../" + folder + "/*.go")
		must.Do(t, err)
		for _, file := range files {
			src, err := os.ReadFile(file)
			must.Do(t, err)
			parsed, err := parser.ParseFile(token.NewFileSet(), file, src, parser.SkipObjectResolution)
			must.Do(t, err)
			for _, d := range parsed.Decls {
				f, ok := d.(*ast.FuncDecl)
				if ok && !strings.HasSuffix(file, "_test.go") && storeReads.Match(src[f.Pos()-1:f.End()-1]) {
					out = append(out, folder+"."+declared(f))
				}
			}
		}
	}
	return out
}

// TestEveryEntranceThatReadsIsInTheTable: a new function that reads
// requests, entries or votes is walked below, or excused.
func TestEveryEntranceThatReadsIsInTheTable(t *testing.T) {
	var walked []string
	for _, way := range waysToRead() {
		walked = append(walked, way.sites...)
	}
	for _, complaint := range unwalked(readSites(t), walked, readNothing()) {
		t.Error(complaint)
	}
}

// changing are the parts of an answer that differ each time.
var changing = regexp.MustCompile(`"request_id":"[^"]*"|(value|content|datetime)="[^"]*"|\d\d:\d\d(:\d\d)?`)

// TestReadingIsLimitedAtEveryEntrance: wes, who has nothing to do with a request, learns nothing
// about it, not even that it exists. ben can read it.
func TestReadingIsLimitedAtEveryEntrance(t *testing.T) {
	t.Parallel()
	w := newEntrances(t)
	c := w.call(aliasOfZoe, 1)
	overHTTP(t, w, c)
	r := w.asked(t, c)
	w.counts(t, r, "ben", approval.Approved, votesOverHTTP(t, w, "ben", r))
	denied := w.asks(t, waysToAsk()[0], aliasOfZoe, 1)
	_, err := w.replica.service.Cancel(t.Context(), "default", denied.ID, "mara", "")
	must.Do(t, err)
	must.Do(t, w.replica.store.Update(t.Context(), "default", func(tx approval.Tx) error {
		tx.SaveGrant(&approval.Grant{
			ID: "grt_" + r.ID, Tenant: "default", Agent: "desk", Target: "restart", Request: r.ID,
			Call: r.Current().Call, MaxUses: 1, Expires: time.Now().Add(time.Hour), Created: time.Now(),
		})
		return nil
	}))
	// an entry that all may read, after all that are about the request
	_, err = w.client(t, "mara-admin").Freeze(t.Context(), "desk", "odd")
	must.Do(t, err)
	var last int64
	testwait.Until(t, "the entries are sealed", func() bool {
		entries, err := w.replica.store.History(t.Context(), "default", r.ID, 0, 100)
		must.Do(t, err)
		if len(entries) > 0 {
			last = entries[len(entries)-1].Index
		}
		return len(entries) >= 3
	})

	for _, way := range waysToRead() {
		t.Run(way.name, func(t *testing.T) {
			fill := func(text, id string, index int64) string {
				text = strings.ReplaceAll(text, "{decided}", denied.ID)
				return strings.NewReplacer("{id}", id, "{index}", strconv.FormatInt(index, 10)).Replace(text)
			}
			read := func(who, id string, index int64) string {
				if way.args != nil {
					args := slices.Clone(way.args)
					for i := range args {
						args[i] = fill(args[i], id, index)
					}
					return w.commands(t, who, args...)
				}
				path := fill(way.path, id, index)
				if !strings.HasPrefix(path, "/v1") {
					return w.visitor(t, who).get(path)
				}
				return w.reads(t, who, path, last)
			}
			sees := func(text string) bool {
				if way.shows != "" {
					return strings.Contains(text, fill(way.shows, r.ID, last))
				}
				return strings.Contains(text, c.word) || strings.Contains(text, r.ID)
			}
			testwait.Until(t, "ben reads it", func() bool { return sees(read("ben", r.ID, last)) })
			told := read("wes", r.ID, last)
			pathless := strings.ReplaceAll(told, fill(way.path, r.ID, last), "")
			if len(way.args) > 1 || way.path != "" && strings.Contains(way.path, "{id}") {
				pathless = strings.ReplaceAll(told, r.ID, "ID") // they said it themselves
			}
			if sees(pathless) {
				t.Errorf("wes reads\n%s", told)
			}
			other := "apr_00000000000000000000000000"
			if !strings.Contains(way.path+strings.Join(way.args, ""), "{id}") {
				return
			}
			want := strings.ReplaceAll(read("wes", other, 1<<40), other, "ID")
			got := strings.ReplaceAll(told, r.ID, "ID")
			if changing.ReplaceAllString(got, "") != changing.ReplaceAllString(want, "") {
				t.Errorf("wes is told\n%s\nand of what is not there\n%s", told, want)
			}
		})
	}
}

// reads gets a path of the API with a person's token. For a stream of events it reads up to one
// after the given entry.
func (w *entrances) reads(t *testing.T, who, path string, until int64) string {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, w.ready.API+path, nil)
	must.Do(t, err)
	req.Header.Set("Authorization", "Bearer "+w.token[who+"-cli"])
	answer, err := ownClient().Do(req)
	must.Do(t, err)
	defer answer.Body.Close()
	var text strings.Builder
	lines := bufio.NewScanner(answer.Body)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		text.WriteString(lines.Text() + "\n")
		if index, ok := strings.CutPrefix(lines.Text(), "id: "); ok {
			if n, err := strconv.ParseInt(index, 10, 64); err == nil && n > until {
				break
			}
		}
	}

	return text.String()
}

// TestSlackOpensNoFormForOthers: a person who may not answer gets a message instead of the form.
func TestSlackOpensNoFormForOthers(t *testing.T) {
	t.Parallel()
	w := newEntrances(t)
	r := w.asks(t, waysToAsk()[2], aliasOfZoe, 1)
	if told := w.clicks(t, "wes", "assent_answer", r); !strings.Contains(told, "Nothing was counted") {
		t.Error(told)
	}
}
