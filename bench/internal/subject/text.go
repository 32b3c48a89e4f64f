package subject

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/assent-dev/assent/bench/internal/model"
)

// The pieces that the languages' texts share: they all write
// comparisons and string literals alike.

func operator(op model.Op) string {
	return map[model.Op]string{
		model.Eq:  "==",
		model.Ne:  "!=",
		model.Gt:  ">",
		model.Gte: ">=",
		model.Lt:  "<",
		model.Lte: "<=",
	}[op]
}

// literal is the operand of Eq and Ne; a number is written with the format.
func literal(m model.Matcher, format string) string {
	if m.Text != "" {
		return strconv.Quote(m.Text)
	}
	return fmt.Sprintf(format, m.Num)
}

func quoted(list []string) string {
	out := make([]string, len(list))
	for i, s := range list {
		out[i] = strconv.Quote(s)
	}
	return strings.Join(out, ", ")
}

func join(g model.Group, sep string, write func(model.Matcher) string) string {
	parts := make([]string, len(g))
	for i, m := range g {
		parts[i] = write(m)
	}
	return strings.Join(parts, sep)
}
