package inbox

import (
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/assent-dev/assent/approval/ledger"
	"github.com/assent-dev/assent/server/feed"
)

// recordPages are the pages that only show: the ledger, activity, calls and agents.
type recordPages struct{ *visit }

// ledgerPage is a part of the ledger, with the checkpoint that covers it.
type ledgerPage struct {
	Subject string
	Entries []entry
	Size    int64
	Root    string
	Note    string
	From    int64  // index of the oldest shown entry
	Older   string // address of the previous entries
	Later   string // address of the later entries about one subject
	Export  bool
}

// entry is one ledger entry, ready to be shown.
type entry struct {
	Index   int64
	At      time.Time
	Type    string
	Subject string
	Actor   string
	Facts   string
	Words   string // text of the actor: reason, response or note
	Sealed  []string
	Broken  string // why it can't be parsed
}

// pageEntries is the largest number of entries on a page.
const pageEntries = 50

func (v recordPages) ledger() error {
	p := ledgerPage{Subject: strings.TrimSpace(v.r.URL.Query().Get("subject")), Export: v.PublicKey != ""}
	size, note, err := v.Store.Checkpoint(v.ctx(), v.Tenant)
	if err != nil {
		return err
	}
	p.Size, p.Note = size, string(note)
	if lines := strings.SplitN(p.Note, "\n", 4); len(lines) > 2 {
		p.Root = lines[2]
	}
	var list []ledger.SealedEntry
	if p.Subject != "" {
		if list, err = v.Store.History(v.ctx(), v.Tenant, p.Subject, v.number("from"), pageEntries); err == nil {
			p.Later, err = v.laterThan(p.Subject, list)
		}
	} else {
		p.From = v.ledgerFrom(size)
		list, err = v.Store.Entries(v.ctx(), v.Tenant, p.From, pageEntries)
	}

	if err != nil {
		return err
	}
	if p.Subject == "" && p.From > 0 {
		p.Older = "/ledger?before=" + strconv.FormatInt(p.From, 10)
	}
	may, err := v.mayRead(feed.About(list))
	if err != nil {
		return err
	}
	var read []ledger.SealedEntry
	for i, e := range list {
		if may[i] {
			read = append(read, e)
		}
	}
	if len(read) == 0 && p.Subject != "" {
		p.Later = ""
	}
	p.Entries = v.entries(read)
	slices.Reverse(p.Entries)
	return v.show("ledger", "Ledger", "ledger", p)
}

// ledgerFrom returns the first index of the page that ends before the parameter before, or at the
// end of the ledger.
func (v recordPages) ledgerFrom(size int64) int64 {
	end := size
	if n := v.number("before"); n > 0 && n < size {
		end = n
	}
	return max(0, end-pageEntries)
}

// number returns an integer parameter, or 0 if it is negative or not an integer.
func (v recordPages) number(name string) int64 {
	n, err := strconv.ParseInt(v.r.URL.Query().Get(name), 10, 64)
	if err != nil {
		return 0
	}
	return max(0, n)
}

// laterThan returns the address of the later entries about a subject, or an empty string if there
// are none.
func (v *visit) laterThan(subject string, list []ledger.SealedEntry) (string, error) {
	if len(list) == 0 {
		return "", nil
	}
	more, err := v.Store.History(v.ctx(), v.Tenant, subject, list[len(list)-1].Index+1, 1)
	if err != nil || len(more) == 0 {
		return "", err
	}
	return "/ledger?" + url.Values{
		"subject": {subject},
		"from":    {strconv.FormatInt(more[0].Index, 10)},
	}.Encode(), nil
}

func (v *visit) entries(list []ledger.SealedEntry) []entry {
	out := make([]entry, len(list))
	for i, e := range list {
		out[i] = readEntry(e)
	}
	return out
}

// readEntry returns an entry with what people wrote, but without arguments and messages. These are
// shown on the request's page, which hides the values that a policy hides.
func readEntry(e ledger.SealedEntry) entry {
	out := entry{Index: e.Index}
	leaf, err := ledger.ParseLeaf(e.Leaf)
	if err != nil {
		out.Broken = err.Error()
		return out
	}
	out.At = leaf.Time
	out.Type = leaf.Type
	out.Subject = leaf.Subject
	out.Actor = leaf.Actor
	if len(leaf.Facts.Members) > 0 {
		out.Facts = string(leaf.Facts.AppendJSON(nil))
	}
	openings, err := ledger.ParseOpenings(e.Openings)
	if err != nil {
		out.Broken = err.Error()
	}
	for name := range leaf.Sealed {
		o, open := openings[name]
		switch {
		case open && (name == "reason" || name == "response" || name == "note"):
			out.Words = strings.TrimSpace(out.Words + " " + o.Value)
		case open:
			out.Sealed = append(out.Sealed, name)
		default:
			out.Sealed = append(out.Sealed, name+" (redacted)")
		}
	}

	slices.Sort(out.Sealed)
	return out
}

// export sends the whole ledger as a file that can be verified offline. It is a POST request,
// because it is recorded in the ledger.
func (v recordPages) export() error {
	if err := v.onlyAdmins(); err != nil {
		return err
	}
	place, err := v.Shares.Streams.Take(v.ctx(), v.who(), 1, 0)
	if err != nil {
		return err
	}
	defer place.Return()
	size, note, err := v.Store.Checkpoint(v.ctx(), v.Tenant)
	if err != nil {
		return err
	}
	if size == 0 || v.PublicKey == "" {
		return &problem{
			http.StatusConflict,
			"Nothing to export yet",
			"The ledger has no signed checkpoint, or this server was not told its public key.",
		}
	}

	if err := v.Service.Record(
		v.ctx(),
		v.Tenant,
		"exported",
		"",
		v.Person.ID,
		map[string]any{"size": size, "channel": Channel},
	); err != nil {
		return err
	}

	h := v.w.Header()
	h.Set("Content-Type", "application/jsonl")
	h.Set("Content-Disposition", `attachment; filename="assent-ledger.jsonl"`)
	h.Set("Cache-Control", "no-store")
	if err := v.writeExport(size, note); err != nil { // without its last line, the file can't be verified
		v.Logger.Error("ledger export ended early", "error", err)
	}
	return nil
}

const exportBatch = 100 // entries

// exportTime is the time limit for sending one batch of entries. The whole export has no time
// limit.
const exportTime = 30 * time.Second

func (v recordPages) writeExport(size int64, note []byte) error {
	handovers, err := v.Store.Handovers(v.ctx(), v.Tenant)
	if err != nil {
		return err
	}
	out, err := ledger.NewWriter(v.w, note, v.PublicKey, handovers...)
	if err != nil {
		return err
	}
	control := http.NewResponseController(v.w)
	for next := int64(0); next < size; {
		list, err := v.Store.Entries(v.ctx(), v.Tenant, next, int(min(exportBatch, size-next)))
		if err != nil {
			return err
		}
		if len(list) == 0 {
			break // Close reports the missing entries
		}
		_ = control.SetWriteDeadline(time.Now().Add(exportTime)) // test recorders don't support deadlines
		for _, e := range list {
			if err := out.Write(e.Leaf, e.Openings); err != nil {
				return err
			}
		}
		next += int64(len(list))
	}

	return out.Close()
}
