package slack

import (
	"errors"
	"strconv"
	"strings"

	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/internal/pattern"
)

// ticket is the value of a button: it identifies exactly the call that the person saw. It is
// not a credential: an answer also needs Slack's signature and a mapped person.
type ticket struct {
	Request  string
	Revision int
	Also     int    // number of additional callers that the message showed
	Binding  string // first hex digits of the revision's binding
}

func ticketOf(r *approval.Request) ticket {
	return ticket{r.ID, r.Current().Number, len(r.Requester.Also), prefix(r.Binding())}
}

const prefixDigits = 16

// prefix returns the first hex digits of a binding.
func prefix(binding string) string {
	_, hex, _ := strings.Cut(binding, ":")
	return hex[:min(len(hex), prefixDigits)]
}

// String returns the value of a button.
func (t ticket) String() string {
	also := ""
	if t.Also > 0 {
		also = "+" + strconv.Itoa(t.Also)
	}
	return t.Request + " " + strconv.Itoa(t.Revision) + also + " " + t.Binding
}

var (
	errTicket  = errors.New("not a value of our buttons")
	ticketForm = pattern.Of(`^([a-z]{2,8}_[0-9a-z]{1,64}) (0|[1-9][0-9]{0,8})(?:\+([1-9][0-9]?))? ([0-9a-f]{16})$`)
	numberForm = pattern.Of(`^(0|[1-9][0-9]{0,3})$`)
)

func parseTicket(s string) (ticket, error) {
	m := ticketForm().FindStringSubmatch(s)
	if m == nil {
		return ticket{}, errTicket
	}
	revision, err := strconv.Atoi(m[2])
	also := 0
	if err == nil && m[3] != "" {
		also, err = strconv.Atoi(m[3])
	}
	return ticket{m[1], revision, also, m[4]}, err
}

// choiceTicket is the value of an element that selects a choice.
type choiceTicket struct {
	ticket
	Choice int
}

// String returns the value of an element.
func (t choiceTicket) String() string { return t.ticket.String() + " " + strconv.Itoa(t.Choice) }

// parseChoice reads the value of an element that selects a choice. It returns an error for an
// invalid value instead of a default.
func parseChoice(s string) (choiceTicket, error) {
	i := strings.LastIndexByte(s, ' ')
	if i < 0 || !numberForm().MatchString(s[i+1:]) {
		return choiceTicket{}, errTicket
	}
	n, err := strconv.Atoi(s[i+1:])
	if err != nil {
		return choiceTicket{}, errTicket
	}
	t, err := parseTicket(s[:i])
	return choiceTicket{t, n}, err
}
