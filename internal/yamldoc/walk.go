package yamldoc

import (
	"fmt"
	"strings"

	yaml "gopkg.in/yaml.v3"

	"github.com/assent-dev/assent/diag"
	"github.com/assent-dev/assent/value"
)

// builder converts yaml.v3's nodes to ours, in source order.
type builder struct {
	findings
	src  *source
	lim  Limits
	slab []Node // allocated nodes that are not used yet
	// size counts the nodes of the tree with aliases expanded; added counts those that aliases
	// add.
	size, added int
	anchors     map[*yaml.Node]anchored
	comments    comments
	failed      bool // a limit is exceeded: nothing more is built
}

// anchored is a complete node that aliases may refer to.
type anchored struct {
	node         *Node
	size, height int
}

// findings collects diagnostics. Every Error of this package stops the load.
type findings struct {
	list   []diag.Finding
	errors int
}

// maxFindings limits the errors, and the warnings, for one file. More would not help.
const maxFindings = 1000

func (f *findings) fail(rule string, at diag.Range, message, expected string, related ...diag.Related) {
	if f.errors++; f.errors > maxFindings {
		return
	}
	found := Stop(rule, at, message, expected)
	found.Related = related
	f.list = append(f.list, found)
}

func (f *findings) warn(rule string, at diag.Range, message, expected string) {
	if len(f.list)-min(f.errors, maxFindings) < maxFindings {
		f.list = append(f.list, Warn(rule, at, message, expected))
	}
}

// new returns a node at [start,end).
func (b *builder) new(kind Kind, start, end int) *Node {
	if len(b.slab) == 0 {
		b.slab = make([]Node, 64)
	}
	n := &b.slab[0]
	b.slab = b.slab[1:]
	n.Kind = kind
	n.src = b.src
	n.start = start
	n.end = end
	return n
}

// node builds one node and returns it with its height: the number of nested collections. The
// node is nil only if the builder has failed.
func (b *builder) node(y *yaml.Node, depth int) (*Node, int) {
	if b.size++; b.size > b.lim.MaxNodes {
		b.tooLarge(y)
	}
	if b.failed {
		return nil, 0
	}
	before := b.size
	var n *Node
	height := 0
	switch y.Kind {
	case yaml.AliasNode:
		return b.alias(y, depth)
	case yaml.SequenceNode, yaml.MappingNode:
		n, height = b.collection(y, depth)
	default:
		n = b.scalar(y)
	}

	if y.Anchor != "" && n != nil {
		if b.anchors == nil {
			b.anchors = make(map[*yaml.Node]anchored)
		}
		b.anchors[y] = anchored{n, b.size - before + 1, height}
	}

	return n, height
}

// refuse reports a limit that y exceeds, once, and stops building.
func (b *builder) refuse(rule string, y *yaml.Node, message, expected string) {
	if !b.failed {
		at := b.src.offset(y.Line, y.Column)
		end := at + 1
		if y.Kind == yaml.AliasNode {
			end += len(y.Value)
		}
		b.fail(rule, b.src.span(at, end), message, expected)
	}

	b.failed = true
}

func (b *builder) alias(y *yaml.Node, depth int) (*Node, int) {
	at := b.src.offset(y.Line, y.Column)
	end := b.anchorEnd(at, y.Value)
	b.comments.token(b.src, at, end)
	target, done := b.anchors[y.Alias]
	switch {
	case !done:
		b.refuse(ruleAlias, y, fmt.Sprintf("anchor %s contains itself", quote(y.Value)), "a value that ends")
		return nil, 0
	case depth+target.height > b.lim.MaxDepth:
		b.tooDeep(y)
		return nil, 0
	}

	b.size += target.size - 1
	b.added += target.size
	switch {
	case b.added > b.lim.MaxAliasNodes:
		b.refuse(ruleAlias, y, fmt.Sprintf("aliases add more than %d values", b.lim.MaxAliasNodes),
			"the values written out, or fewer aliases")
		return nil, 0
	case b.size > b.lim.MaxNodes:
		b.tooLarge(y)
		return nil, 0
	}

	return target.node, target.height
}

func (b *builder) tooLarge(y *yaml.Node) {
	b.refuse(ruleTooLarge, y, fmt.Sprintf("more than %d values in one file", b.lim.MaxNodes), "a smaller file")
}

func (b *builder) tooDeep(y *yaml.Node) {
	b.refuse(
		ruleTooDeep,
		y,
		fmt.Sprintf("more than %d levels of nesting", b.lim.MaxDepth),
		"a flatter document",
	)
}

// collection builds a sequence or mapping. Its range extends from its first byte to the end of
// its last part.
func (b *builder) collection(y *yaml.Node, depth int) (*Node, int) {
	if depth >= b.lim.MaxDepth {
		b.tooDeep(y)
		return nil, 0
	}
	start := b.properties(y)
	n := b.new(Sequence, start, start)
	height := 0
	if y.Kind == yaml.MappingNode {
		n.Kind = Mapping
		height = b.fields(n, y, depth)
	} else {
		n.Items = make([]*Node, len(y.Content))
		for i, item := range y.Content {
			var h int
			n.Items[i], h = b.node(item, depth+1)
			height = max(height, h)
			b.grow(n, item, n.Items[i])
		}
	}

	if b.failed {
		return nil, 0
	}
	if open := b.src.at(start); y.Style&yaml.FlowStyle != 0 && (open == '[' || open == '{') {
		n.end = b.comments.closing(b.src, max(n.end, start+1))
	}
	n.Range = b.src.span(n.start, n.end)
	b.checkTag(y, n)
	return n, height + 1
}

// grow extends a collection to the end of one of its parts.
func (b *builder) grow(n *Node, y *yaml.Node, part *Node) {
	switch {
	case part == nil:
	case y.Kind == yaml.AliasNode:
		n.end = max(n.end, b.src.offset(y.Line, y.Column)+1+len(y.Value))
	default:
		n.end = max(n.end, part.end)
	}
}

func (b *builder) fields(n *Node, y *yaml.Node, depth int) int {
	height := 0
	n.Fields = make([]Field, 0, len(y.Content)/2)
	seen := keys{}
	for i := 0; i+1 < len(y.Content) && !b.failed; i += 2 {
		key := b.key(y.Content[i], depth)
		v, h := b.node(y.Content[i+1], depth+1)
		height = max(height, h)
		b.grow(n, y.Content[i], key)
		b.grow(n, y.Content[i+1], v)
		if key == nil || v == nil {
			continue
		}
		if first := seen.add(n.Fields, key); first != nil {
			duplicate(&b.findings, key, first)
			continue
		}
		n.Fields = append(n.Fields, Field{key, v})
	}

	n.index = seen.index
	return height
}

// duplicate reports a key that occurs twice in one mapping.
func duplicate(f *findings, key, first *Node) {
	at := first.Range.Start
	f.fail(
		ruleDuplicateKey,
		key.Range,
		fmt.Sprintf("duplicate key %s (first at line %d, column %d)", quote(key.Text), at.Line, at.Column),
		"each key once: readers differ in which one wins",
		diag.Related{Range: first.Range, Message: "first here"},
	)
}

// keys detects duplicates: by comparing in small mappings, by a map in larger ones.
type keys struct{ index map[string]int }

// add returns the existing field with the same name, or nil.
func (k *keys) add(fields []Field, key *Node) *Node {
	const small = 12
	if len(fields) < small {
		for i := range fields {
			if fields[i].Key.Text == key.Text {
				return fields[i].Key
			}
		}
		return nil
	}

	if k.index == nil {
		k.index = make(map[string]int, 4*small)
		for i := range fields {
			k.index[fields[i].Key.Text] = i
		}
	}

	if first, there := k.index[key.Text]; there {
		return fields[first].Key
	}
	k.index[key.Text] = len(fields) // the index at which the caller appends it
	return nil
}

// key builds a key, which must be text for every reader. It returns nil after a finding.
func (b *builder) key(y *yaml.Node, depth int) *Node {
	if y.Kind != yaml.ScalarNode {
		at := b.src.offset(y.Line, y.Column)
		n, _ := b.node(y, depth+1) // the content may also be wrong
		if n != nil && y.Kind != yaml.AliasNode {
			b.fail(ruleKey, n.Range, "a key that is a collection", "text as the key")
		} else if n != nil {
			b.fail(ruleKey, b.src.span(at, at+1+len(y.Value)), "a key that is an alias", "the key written out")
		}
		return nil
	}

	before, warned := b.errors, len(b.list)
	n, _ := b.node(y, depth+1)
	if n == nil || b.errors > before {
		return nil
	}
	b.list = b.list[:warned] // warnings for values don't apply to keys: they are errors or irrelevant
	if !b.keyIsText(n) {
		return nil
	}
	return n
}

func (b *builder) keyIsText(n *Node) bool {
	switch t := trapOf(n.Text, resolved{kind: n.Kind}); {
	case n.style != plain || n.tagged:
		return true
	case n.Text == "<<":
		b.fail(ruleMergeKey, n.Range, "merge key <<", "the fields written out: YAML 1.2 has no merge keys")
	case n.Text == "" || n.Kind == Null:
		b.fail(ruleKey, n.Range, "a key that is null", "a name")
	case n.Kind != String:
		b.fail(ruleKey, n.Range, fmt.Sprintf("the key %s is a %s", n.Text, n.Kind), "quotes: "+quote(n.Text))
	case t.key:
		b.fail(
			ruleKey,
			n.Range,
			fmt.Sprintf("the key %s is %s to a YAML 1.1 reader", n.Text, t.reading),
			"quotes: "+quote(n.Text),
		)
	default:
		return true
	}

	return false
}

func (b *builder) scalar(y *yaml.Node) *Node {
	start := b.properties(y)
	n := b.new(String, start, start)
	n.Text, n.style = y.Value, styleOf(y)
	if n.Text != "" || n.style != plain {
		n.end = b.src.scalarEnd(start, n.style, n.Text)
	}
	n.Range = b.src.span(n.start, n.end)
	b.comments.scalar(b.src, n)
	if n.style == plain {
		b.resolve(n, y.Style&yaml.TaggedStyle != 0 && y.Tag == "!!str")
	}
	b.checkTag(y, n)
	return n
}

func styleOf(y *yaml.Node) style {
	switch {
	case y.Style&yaml.DoubleQuotedStyle != 0:
		return doubleQuoted
	case y.Style&yaml.SingleQuotedStyle != 0:
		return singleQuoted
	case y.Style&yaml.LiteralStyle != 0:
		return literal
	case y.Style&yaml.FoldedStyle != 0:
		return folded
	}

	return plain
}

// resolve sets the type of a plain scalar, and warns if YAML 1.1 gives it another one.
func (b *builder) resolve(n *Node, sure bool) {
	r := resolve(n.Text)
	if !setResolved(&b.findings, n, r) || sure {
		return
	}
	if t := trapOf(n.Text, r); t.rule != "" {
		b.warn(
			t.rule,
			n.Range,
			fmt.Sprintf("%s is %s here, but %s to a YAML 1.1 reader", n.Text, ours(n), t.reading),
			unambiguous(n, t),
		)
	}
}

// setResolved sets the fields that depend on the type. It returns false after a finding.
func setResolved(f *findings, n *Node, r resolved) bool {
	n.Kind = r.kind
	n.Bool = r.truth
	n.Finite = r.finite
	n.float = r.float
	if r.kind != Number || !r.finite {
		return true
	}
	lexeme, ok := jsonNumber(n.Text)
	if ok {
		var err error
		n.Num, err = value.ParseNum(lexeme)
		ok = err == nil
	}
	if !ok {
		n.Finite = false
		f.fail(ruleNumber, n.Range, "a number that programs cannot hold",
			"a number between 5e-324 and 1.7e308, or quotes if it is text")
	}
	return ok
}

func ours(n *Node) string {
	switch {
	case n.Kind == String:
		return "text"
	case n.float:
		return "a number"
	}

	lexeme, _ := jsonNumber(n.Text)
	return "the number " + lexeme
}

// unambiguous returns how to write a trapped scalar so that every reader agrees.
func unambiguous(n *Node, t trap) string {
	switch {
	case t.rule == ruleBool11:
		return fmt.Sprintf("%s, or quotes if text is meant: %s", t.reading, quote(n.Text))
	case n.Kind == Number:
		lexeme, _ := jsonNumber(n.Text)
		if e := strings.IndexAny(lexeme, "eE"); e >= 0 || lexeme == n.Text {
			return "the digits written out, or quotes if text is meant: " + quote(n.Text)
		}
		return fmt.Sprintf("%s, or quotes if text is meant: %s", lexeme, quote(n.Text))
	}

	return "quotes: " + quote(n.Text)
}

// quote quotes a text of the author for a message, and shortens it if it is long.
func quote(s string) string {
	const most = 60
	if r := []rune(s); len(r) > most {
		s = string(r[:most]) + "…"
	}
	return fmt.Sprintf("%q", s)
}

// properties returns the offset of y's content, after its anchor and tag. Before a block
// collection, an anchor or tag belongs to its first part if it is at the position of that part.
func (b *builder) properties(y *yaml.Node) int {
	at := b.src.offset(y.Line, y.Column)
	if c := b.src.at(at); c != '&' && c != '!' {
		return at
	}
	first := -1
	if len(y.Content) > 0 && y.Style&yaml.FlowStyle == 0 {
		first = b.src.offset(y.Content[0].Line, y.Content[0].Column)
	}
	for c := b.src.at(at); (c == '&' || c == '!') && at != first; c = b.src.at(at) {
		end := b.src.propertyEnd(at)
		if c == '&' {
			end = b.anchorEnd(at, y.Anchor)
		}
		if y.Kind == yaml.ScalarNode && y.Value == "" && styleOf(y) == plain && !b.anotherProperty(end) {
			return end
		}
		at = b.comments.blanks(b.src, at, end)
	}

	return at
}

// anchorEnd returns the offset after an anchor or alias. It refuses names with further
// characters: yaml.v3 ends names at characters that YAML 1.2 includes, such as the colon of
// &a:b.
func (b *builder) anchorEnd(at int, name string) int {
	end := at + 1 + len(name)
	if written := b.src.propertyEnd(at); written != end {
		b.fail(
			ruleAlias,
			b.src.span(at, written),
			"an anchor or alias with a name that readers take differently",
			"letters, digits, - and _, then a space",
		)
	}

	return end
}

// propertyEnd returns the offset after the anchor or tag at an offset.
func (s *source) propertyEnd(at int) int {
	stop := ",[]{}"
	if s.at(at) == '!' && s.at(at+1) == '<' {
		stop = "" // a verbatim tag may contain these
	}
	for at < len(s.text) && !isSpace(s.text[at]) && strings.IndexByte(stop, s.text[at]) < 0 {
		at++
	}
	return at
}

func (b *builder) anotherProperty(at int) bool {
	for isBlank(b.src.at(at)) {
		at++
	}
	return b.src.at(at) == '&' || b.src.at(at) == '!'
}

// checkTag refuses a tag that gives a node another type than it has without the tag.
func (b *builder) checkTag(y *yaml.Node, n *Node) {
	if y.Style&yaml.TaggedStyle == 0 {
		b.checkBang(y, n)
		return
	}
	n.tagged = true
	if y.Tag == tagOf(n) {
		return
	}
	b.fail(
		ruleTag,
		b.src.span(b.src.offset(y.Line, y.Column), n.end),
		fmt.Sprintf("tag %s on a value that is %s without it", quoteTag(y.Tag), tagOf(n)),
		"the value without a tag, in quotes if it is text",
	)
}

// checkBang refuses the tag "!", which turns a plain scalar into text. yaml.v3 does not report
// it, so the source is searched.
func (b *builder) checkBang(y *yaml.Node, n *Node) {
	if n.style != plain || n.Kind == String || n.Kind >= Sequence {
		return
	}
	at := b.src.offset(y.Line, y.Column)
	for _, property := range strings.Fields(string(b.src.text[at:n.start])) {
		if property == "!" {
			b.fail(
				ruleTag,
				b.src.span(at, n.end),
				"tag ! on a value that is "+tagOf(n)+" without it",
				"quotes if it is text",
			)
		}
	}
}

func tagOf(n *Node) string {
	switch n.Kind {
	case Null:
		return "!!null"
	case Bool:
		return "!!bool"
	case Number:
		if n.float {
			return "!!float"
		}
		return "!!int"
	case String:
		return "!!str"
	case Sequence:
		return "!!seq"
	}

	return "!!map"
}

func quoteTag(tag string) string {
	q := quote(tag)
	return q[1 : len(q)-1]
}
