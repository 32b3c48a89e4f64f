package main

import (
	"slices"
	"strconv"
	"strings"
)

// offered is a tool with the names that the agent's file and calls use.
type offered struct {
	server   string // "" is a local tool
	name     string
	destroys bool
}

// offered lists the tools that the agent has.
func (s *starter) offered() []offered {
	if len(s.catalogs) == 0 {
		return []offered{{name: "send_mail"}}
	}
	var out []offered
	for _, list := range s.catalogs {
		for _, t := range list.Tools {
			one := offered{
				server:   list.Server,
				name:     t.Name,
				destroys: t.Hints.Destructive != nil && *t.Hints.Destructive,
			}
			if list.Server == "" {
				one.name = aliasOf(t.Name)
			}
			out = append(out, one)
		}
	}

	return out
}

// fill inserts a tool into the template of a test.
func (o offered) fill(text string) string {
	kind, code := "kind: tool", "not_declared"
	if o.server != "" {
		kind, code = "kind: mcp_tool, server: "+o.server, "not_allowed"
	}
	name := o.name // an alias is written as in the agent's file
	if o.server != "" {
		name = scalar(name)
	}
	return strings.NewReplacer("KIND", kind, "TOOL", name, "CODE", code).Replace(text)
}

// tests returns the first tests: of a tool that asks one person, one that asks two, and one that
// the agent doesn't have.
func (s *starter) tests() string {
	text, twice := startTest, s.destructive()
	all := s.offered()
	once := func(o offered) bool { return !slices.Contains(twice, o.name) }
	votes := []string{"alice@example.com"}
	first := slices.IndexFunc(all, once)
	if first >= 0 {
		text += all[first].asked("a tool asks one of the approvers", 1)
	}
	if i := slices.IndexFunc(all, func(o offered) bool { return o.destroys }); i >= 0 {
		text += all[i].asked("what destroys something asks two of them", 2)
		if first < 0 {
			first = i
			votes = append(votes, "bob@example.com")
		}
	}

	text += s.nobodys().fill(strings.Replace(startDenied, "NOBODYS", s.nobodys().name, 1))
	if first < 0 {
		return text
	}
	return text + all[first].answered(votes)
}

// asked returns the test of a tool that asks a number of people.
func (o offered) asked(title string, people int) string {
	text := strings.NewReplacer("TITLE", title, "COUNT", strconv.Itoa(people)).Replace(startAsked)
	return o.fill(text)
}

// answered returns the tests of answers about a tool.
func (o offered) answered(approve []string) string {
	var lines []string
	for _, person := range approve {
		lines = append(lines, "      - {person: "+person+", vote: approve}")
	}
	return o.fill(strings.Replace(startVotes, "VOTES", strings.Join(lines, "\n"), 1))
}

// nobodys returns a tool that the agent doesn't have.
func (s *starter) nobodys() offered {
	o := offered{name: "no_such_tool"}
	for _, list := range s.catalogs {
		o.server = list.Server
		break
	}
	for slices.ContainsFunc(s.offered(), func(other offered) bool { return other.name == o.name }) {
		o.name += "_"
	}
	return o
}
