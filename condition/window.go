package condition

import (
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"
	_ "time/tzdata" // the names of zones must not depend on the machine

	"github.com/assent-dev/assent/diag"
	"github.com/assent-dev/assent/internal/yamldoc"
)

// Window is a set of moments: on some days and dates, at some hours, by the clock on the wall in a
// zone. Only calendar and clock count, so a window has the same hours on days when clocks change.
type Window struct {
	Zone     string      `json:"zone"`
	Days     []int       `json:"days,omitempty"`  // 0 is Monday; sorted; none: every day
	Hours    []Interval  `json:"hours,omitempty"` // none: the whole day
	Dates    []DateRange `json:"dates,omitempty"` // none: every date
	NotDates []DateRange `json:"not_dates,omitempty"`

	zone *time.Location
}

// Interval is a part of a day, in minutes after midnight. From is included, To is not. If To is not
// after From, it runs until To of the next day.
type Interval struct {
	From int `json:"from"`
	To   int `json:"to"`
}

// DateRange is a range of dates, both included, each written as the number YYYYMMDD.
type DateRange struct {
	From int `json:"from"`
	To   int `json:"to"`
}

// TimeTest is a test of the moment of a call.
type TimeTest struct {
	Window  *Window
	Outside bool // the moment must not be in the window
}

// truth evaluates the test. Without a moment it is Unknown.
func (t *TimeTest) truth(at time.Time) Truth {
	if at.IsZero() {
		return Unknown
	}
	return truthOf(t.Window.Has(at) != t.Outside)
}

// String describes the test: "during mon-fri 08:00-18:00 Europe/Berlin".
func (t *TimeTest) String() string {
	if t.Outside {
		return "outside " + t.Window.String()
	}
	return "during " + t.Window.String()
}

// Has reports whether a moment is in the window.
func (w *Window) Has(at time.Time) bool {
	local := at.In(w.zone)
	second := local.Hour()*3600 + local.Minute()*60 + local.Second()
	year, month, day := local.Date()
	yesterday := time.Date(year, month, day-1, 12, 0, 0, 0, time.UTC)
	hours := w.Hours
	if len(hours) == 0 {
		hours = []Interval{{0, 24 * 60}}
	}
	return slices.ContainsFunc(hours, func(i Interval) bool {
		if i.To > i.From {
			return second >= i.From*60 && second < i.To*60 && w.begins(local)
		}
		return second >= i.From*60 && w.begins(local) || second < i.To*60 && w.begins(yesterday)
	})
}

// begins reports whether intervals begin on the date of a local time.
func (w *Window) begins(local time.Time) bool {
	return (len(w.Days) == 0 || slices.Contains(w.Days, (int(local.Weekday())+6)%7)) && w.onDate(local)
}

// onDate reports whether the window's dates allow the date of a local time.
func (w *Window) onDate(local time.Time) bool {
	year, month, day := local.Date()
	date := year*10_000 + int(month)*100 + day
	in := func(r DateRange) bool { return r.From <= date && date <= r.To }
	return (len(w.Dates) == 0 || slices.ContainsFunc(w.Dates, in)) && !slices.ContainsFunc(w.NotDates, in)
}

// String describes the window as a file writes it.
func (w *Window) String() string {
	var out []string
	for _, d := range w.Days {
		out = append(out, dayNames[d])
	}
	parts := []string{strings.Join(out, ",")}
	out = nil
	for _, i := range w.Hours {
		out = append(out, fmt.Sprintf("%02d:%02d-%02d:%02d", i.From/60, i.From%60, i.To/60, i.To%60))
	}
	parts = append(parts, strings.Join(out, ","), datesText("", w.Dates), datesText("not ", w.NotDates), w.Zone)

	return strings.Join(slices.DeleteFunc(parts, func(s string) bool { return s == "" }), " ")
}

func datesText(prefix string, ranges []DateRange) string {
	var out []string
	date := func(n int) string { return fmt.Sprintf("%04d-%02d-%02d", n/10_000, n/100%100, n%100) }
	for _, r := range ranges {
		if r.From == r.To {
			out = append(out, prefix+date(r.From))
		} else {
			out = append(out, prefix+date(r.From)+".."+date(r.To))
		}
	}
	return strings.Join(out, ",")
}

var dayNames = [...]string{"mon", "tue", "wed", "thu", "fri", "sat", "sun"}

// key returns a text that is the same for equal windows, and from which windowOf makes the window.
func (w *Window) key() string {
	text, _ := json.Marshal(w) // texts and numbers always have JSON
	return string(text)
}

func windowOf(key string) (*Window, bool) {
	w := &Window{}
	if json.Unmarshal([]byte(key), w) != nil {
		return nil, false
	}
	var err error
	w.zone, err = zoneOf(w.Zone)
	return w, err == nil
}

// zoneOf returns the zone with an exact name of the IANA database.
func zoneOf(name string) (*time.Location, error) {
	files := strings.HasPrefix(name, "posix") || strings.HasPrefix(name, "right/") // of some machines only
	// LoadLocation also opens files by names such as Europe//Berlin.
	if files || path.Clean(name) != name || slices.Contains([]string{"", "Local", "localtime", "Factory"}, name) {
		return nil, errors.New("no zone has that name")
	}
	zone, err := time.LoadLocation(name)
	if err != nil {
		return nil, errors.New("no zone has that name")
	}
	return zone, nil
}

// timeTests reads the `time` of a group.
func (p *parser) timeTests(f *yamldoc.Field) []Matcher {
	var out []Matcher
	for i := range f.Value.Fields {
		part := &f.Value.Fields[i]
		m := Matcher{
			Key:      "time",
			KeyRange: part.Key.Range,
			Range:    diag.Range{Start: part.Key.Range.Start, End: part.Value.Range.End},
		}
		w := p.window(part.Value)
		if w == nil || part.Key.Text != "during" && part.Key.Text != "outside" {
			p.unless(part.Key.Range)
			m.Tests = []Test{unreadableTest(m.Range)}
		} else {
			m.Time = &TimeTest{Window: w, Outside: part.Key.Text == "outside"}
		}
		out = append(out, m)
	}
	if len(out) == 0 {
		p.refuse(f.Value.Range)
		unreadable := []Test{unreadableTest(f.Value.Range)}
		out = []Matcher{{Key: "time", KeyRange: f.Key.Range, Range: f.Value.Range, Tests: unreadable}}
	}

	return out
}

// unless reports a value of the wrong form, if nothing else was reported.
func (p *parser) unless(at diag.Range) {
	if !yamldoc.Stops(p.findings) {
		p.refuse(at)
	}
}

// window reads a window. It returns nil if it reports an error.
func (p *parser) window(n *yamldoc.Node) *Window {
	w, sound := &Window{}, true
	wrong := func(at diag.Range, message, expected string) {
		p.findings = append(p.findings, yamldoc.Stop(ruleTime, at, message, expected))
		sound = false
	}
	zone := n.Get("zone")
	if zone == nil {
		wrong(n.Range, "a window of time needs its zone", "zone: Europe/Berlin")
		return nil
	}
	var err error
	if w.Zone = zone.Text; zone.Kind == yamldoc.String {
		w.zone, err = zoneOf(zone.Text)
	}
	if w.zone == nil || err != nil {
		wrong(zone.Range, fmt.Sprintf("%q: no zone has that name", zone.Text),
			"a name of the IANA database, such as Europe/Berlin")
	}
	each := func(key, expected string, read func(text string) error) {
		list := n.Get(key)
		if list == nil {
			return
		}
		if len(list.Items) == 0 {
			wrong(list.Range, key+" needs at least one entry", expected)
		}
		for _, item := range list.Items {
			if err = read(item.Text); err != nil || item.Kind != yamldoc.String {
				wrong(item.Range, fmt.Sprintf("%q does not have the right form", item.Text), expected)
			}
		}
	}
	each("days", "a day or a range of days, such as mon or mon-fri", w.addDays)
	each("hours", "an interval such as 08:00-18:00; 24:00 only at its end", w.addHours)
	const dates = "a date or a range of dates, such as 2026-12-24 or 2026-12-24..2026-12-31"
	each("dates", dates, func(text string) error { return addDates(&w.Dates, text) })
	each("not_dates", dates, func(text string) error { return addDates(&w.NotDates, text) })
	if !sound {
		return nil
	}
	slices.Sort(w.Days)
	w.Days = slices.Compact(w.Days)

	return w
}

var errForm = errors.New("it does not have the right form")

func (w *Window) addDays(text string) error {
	first, last, ranged := strings.Cut(text, "-")
	from := slices.Index(dayNames[:], first)
	to := from
	if ranged {
		to = slices.Index(dayNames[:], last)
	}
	if from < 0 || to < 0 {
		return errForm
	}
	for d := from; ; d = (d + 1) % len(dayNames) {
		w.Days = append(w.Days, d)
		if d == to {
			return nil
		}
	}
}

func (w *Window) addHours(text string) error {
	from, to, ranged := strings.Cut(text, "-")
	start, sound := minuteOf(from)
	end, fits := minuteOf(to)
	if !ranged || !sound || !fits || start == 24*60 {
		return errForm
	}
	w.Hours = append(w.Hours, Interval{From: start, To: end})

	return nil
}

// minuteOf reads a time of the day as HH:MM, up to 24:00.
func minuteOf(text string) (int, bool) {
	hour, minute, _ := strings.Cut(text, ":")
	if len(hour) != 2 || len(minute) != 2 || strings.Trim(hour+minute, "0123456789") != "" {
		return 0, false
	}
	h, _ := strconv.Atoi(hour) // two digits
	m, _ := strconv.Atoi(minute)

	return h*60 + m, m < 60 && h*60+m <= 24*60
}

func addDates(to *[]DateRange, text string) error {
	first, last, ranged := strings.Cut(text, "..")
	if !ranged {
		last = first
	}
	r := DateRange{From: dateOf(first), To: dateOf(last)}
	if r.From == 0 || r.To == 0 || r.To < r.From {
		return errForm
	}
	*to = append(*to, r)

	return nil
}

// dateOf returns a date as the number YYYYMMDD, or 0 if it is none.
func dateOf(text string) int {
	t, err := time.Parse(time.DateOnly, text)
	if err != nil || len(text) != len(time.DateOnly) {
		return 0
	}
	return t.Year()*10_000 + int(t.Month())*100 + t.Day()
}
