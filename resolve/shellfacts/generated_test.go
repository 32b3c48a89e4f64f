//go:build traced

package shellfacts

import (
	"flag"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

var (
	generatedLines = flag.Int("lines", 60, "how many generated lines the traced shells run")
	generatedSeed  = flag.Uint64("seed", 1, "of the generated lines")
)

// lines generates lines that a shell may read in an unexpected way.
type lines struct{ *rand.Rand }

func (g lines) one(of ...string) string { return of[g.IntN(len(of))] }

func (g lines) program() string {
	return g.one("ls", "cat", "p1", "rm", "git", "evil", "grep", "echo", "printf", "test", "[", "true", ":", "cd",
		"env", "nice", "nohup", "setsid", "timeout", "command", "exec", "xargs", "find", "sh", "bash", "dash",
		"sort", "time",
		"eval", "trap", "alias", "builtin", "bin/evil", "wait", "type", "kill", "sudo", "tee", "coproc",
		"repeat", "exit", "return")
}

func (g lines) word(depth int) string {
	switch g.IntN(30) {
	case 0:
		return "'" + g.line(depth+1) + "'"
	case 1:
		return `"` + g.one("a b", "$X", `a\"b`, `\\`, `a\`+"\n"+`b`, "`evil`", "$(evil)", "'", "#", `\$(evil)`) + `"`
	case 2:
		return "$(" + g.line(depth+1) + ")"
	case 3:
		return "`" + g.one("evil", "ls", "p1 a") + "`"
	case 4:
		return g.one("<(", ">(") + g.line(depth+1) + ")"
	case 5:
		return g.one("$i", "\"$i\"", "${i}x", "$i.a", "$i/b", "$X", "${X}", "${X%p1}", "$Y", "${Y:-evil}", "$@", "$?", "$#", "$'evil'", "$\"evil\"",
			"${#X}", "$$")
	case 6:
		return g.one("*", "a*", "[ab]", "?", "{a,evil}", "~", "ev{i,}l", "@(a|b)", "{}", "'{}'", "*(e:'evil':)")
	case 7, 8:
		return g.one("-n", "-c", "-exec", "-0", "-r", "--", "-S", "-i", "-x", "-a", "-p", "-v", "-ok",
			"-execdir", "-delete", "-I", "-e", "-s", "+x")
	case 9:
		return g.one(`\;`, "';'", "+", ";", "{}", "'+'")
	case 10:
		return g.one("5", "0", "1", "0.1", "5s", "10")
	case 11:
		return g.one("A=b", "PATH=.", "X=evil", "--compress-program=evil", "--comp=evil", "of=x", "=evil", "a=")
	case 12:
		return g.one(`\`+"\n", `a\ b`, `\a`, `ev\il`, `e''vil`, `"e"vil`, "ev\\\nil", `a\`, `\\`, "#", "a#b",
			"!", "{", "}", "do", "then", "in")
	case 13:
		return g.one("HEAD~1", "HEAD^", "@{u}..", "a{0}", "a~", "x=~a", "a:~", "a{b", "a{b}c", "a{}", "é", "ｅvil", "\u00a0", "\u200b", "\v", "\f", "\t", "a\u2028b")
	default:
		return g.one("a", "b", ".", "evil", "ls", "p1", "cat", "env", "sh", "find", "nice", "xargs", "a", "b", "sort")
	}
}

func (g lines) redirect(depth int) string {
	to := g.one("x", "/dev/null", "/dev/stderr", "y", "'a b'", "$X", "a", ".z", "&1", "&2", "&x", "&-", "$(ls)", `"q"`, "{p,q}", "x\\y", "'$X'")
	switch g.IntN(12) {
	case 0:
		end := g.one("E", "'E'", `"E"`, `\E`, "E''", "$X", "E\\\nE")
		return g.one("<<", "<<-") + end + "\n" + g.one("a", "$(evil)", "`evil`", "\\$(evil)", "E\\", "\tE", "'",
			"$X", "a\\") + "\n" +
			g.one("E", "\tE", "E ", "$X", "EE") + "\n"
	case 1:
		return "<<<" + g.word(depth+2)
	}

	return g.one("", "", "", "2", "1", "10", "{v}") + g.one(">", ">>", "<", "<>", ">|", "&>", "&>>", ">&", "<&",
		">!") + g.one("", " ") + to
}

func (g lines) command(depth int) string {
	var b strings.Builder
	if g.IntN(25) == 0 {
		b.WriteString(g.one("A=b ", "PATH=. ", "! ", "time ", "X=evil; ", "> x ", "&>x "))
	}
	b.WriteString(g.program())
	for range g.IntN(5) {
		b.WriteString(" ")
		if g.IntN(9) == 0 {
			b.WriteString(g.redirect(depth))
		} else {
			b.WriteString(g.word(depth))
		}
	}

	return b.String()
}

func (g lines) line(depth int) string {
	if depth > 2 {
		return g.one("evil", "ls", "evil a", "p1 a", "true")
	}
	switch g.IntN(24) {
	case 0:
		return "if " + g.command(depth) + "; then " + g.line(depth+1) + "; fi"
	case 1:
		return "case a in " + g.one("a", "(a|b", "*", "$X") + ") " + g.line(depth+1) + g.one(";;", ";&", "") + " esac"
	case 2:
		return "{ " + g.line(depth+1) + "; }" + g.one("", " > x", " &>x evil", " evil")
	case 3:
		return "(" + g.line(depth+1) + ")" + g.one("", " > x", " 2>&1")
	case 4:
		return g.command(depth) + g.one(" # ", " #", "#", " \\#") + g.line(depth+1)
	case 5, 6, 7, 8:
		return g.command(depth) + g.one("; ", " && ", " || ", " | ", " & ", "\n", " |& ", ";;", "&>x ", " \\\n",
			" &! ", "&|") + g.line(depth+1)
	case 9:
		return g.one("for i in a; do ", "for i in a b; do ", "for i in *; do ", "for i in rm -n; do ", "while ! true; do ", "until true; do ",
			"select i in a; do ") + g.line(depth+1) + "; done"
	case 10:
		return g.one("ls() ", "function ls ", "() ") + "{ " + g.line(depth+1) + "; }; " + g.command(depth)
	case 11:
		return g.one("find . -name a -exec ", "xargs ", "xargs -n 1 ", "env ", "nice -n 5 ", "timeout 5 ",
			"command ", "nohup ", "setsid ", "exec ") +
			g.command(depth+1) + g.one("", " ';'", ` {} \;`, " '{}' +", " < a", " +")
	case 12:
		return g.one("sh", "bash", "dash") + " -c '" + strings.ReplaceAll(g.line(depth+1), "'", g.one(`'\''`,
			`"`, "")) + "'" + g.one("", " a", " -- evil")
	}

	return g.command(depth)
}

func TestGeneratedLinesRunNothingThatTheFactsDeny(t *testing.T) {
	s := newStage(t)
	g := lines{rand.New(rand.NewPCG(*generatedSeed, 0))}
	work := make(chan string)
	var mu sync.Mutex
	known, ran := 0, 0
	seen := map[string]int{}
	var wait sync.WaitGroup
	for range 3 {
		wait.Go(func() {
			for line := range work {
				f := Of(line, Options{})
				if len(f.Members().Members) == 0 {
					continue // nothing is claimed
				}
				for _, sh := range shells() {
					tr := s.run(t, sh, line)
					m := missed(f, tr)
					mu.Lock()
					known++
					ran += len(tr.ran)
					if m != "" {
						seen[filepath.Base(sh)]++
						if seen[filepath.Base(sh)] < 12 {
							t.Errorf("%s: %q: %s", filepath.Base(sh), line, m)
						}
					}
					mu.Unlock()
				}
			}
		})
	}
	claimed := 0
	for made := 0; claimed < *generatedLines && made < 100**generatedLines; made++ {
		line := g.line(0)
		if f := Of(line, Options{}); strings.Contains(line, "\x00") || len(f.Members().Members) == 0 {
			continue
		}
		claimed++
		work <- line
	}
	close(work)
	wait.Wait()
	t.Log(claimed, "lines with facts,", known, "runs,", ran, "programs started, missed", seen)
}
