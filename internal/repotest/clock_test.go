package repotest

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
)

// ownClock lists the packages of helpers that may compare wall-clock
// time, each with the reason.
func ownClock() map[string]string {
	return map[string]string{"internal/testwait": "decides when to log that a wait makes no progress; it fails no test"}
}

// checkWallClock reports tests whose result depends on how fast the machine
// is: comparisons of durations measured with the wall clock. Code that
// only runs in a bubble of testing/synctest has a clock of its own.
func checkWallClock(kept map[string]string, packages []checked) []string {
	var out []string
	excused := maps.Clone(kept)
	for _, c := range packages {
		delete(excused, c.pkg.path)
		if kept[c.pkg.path] == "" {
			out = append(out, newClock(c).comparisons()...)
		}
	}

	for name := range excused {
		out = append(out, fmt.Sprintf("ownClock() excuses %s, which is not there", name))
	}
	return out
}

// wall says in which way a value depends on the wall clock.
type wall uint8

const (
	wallTime     wall = 1 << iota // a time.Time of the clock
	wallDuration                  // the difference of two such times, in any unit
)

// clock follows values of the wall clock through one package. It does
// not distinguish the calls of a function from each other.
type clock struct {
	checked
	bubble *bubble
	// vars are the variables and fields that hold such a value, or a
	// slice, array, map or function of them.
	vars map[types.Object]wall
	// results are the results of functions, by position. The key is a
	// *types.Func or an *ast.FuncLit.
	results map[any][]wall
	changed bool
}

func newClock(c checked) *clock {
	k := &clock{checked: c, bubble: newBubble(c), vars: map[types.Object]wall{}, results: map[any][]wall{}}
	for k.changed = true; k.changed; {
		k.changed = false
		for _, f := range c.pkg.files {
			k.follow(f.ast)
		}
	}
	return k
}

func (k *clock) comparisons() []string {
	var out []string
	found := func(n ast.Node, what string) {
		out = append(out, at(k.fset, n)+": "+what+": count work, use testing/synctest, or measure in bench/")
	}
	for _, f := range k.pkg.files {
		ast.Inspect(f.ast, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.BinaryExpr:
				if compares(n.Op) && !k.absent(n.Y) && (k.of(n.X)|k.of(n.Y))&wallDuration != 0 {
					found(n, "compares wall-clock durations")
				}
			case *ast.SwitchStmt:
				if n.Tag != nil && k.of(n.Tag)&wallDuration != 0 {
					found(n, "compares wall-clock durations")
				}
			case *ast.CallExpr:
				method, ok := n.Fun.(*ast.SelectorExpr)
				if ok && slices.Contains(orders, name(k.info.Uses[method.Sel])) && len(n.Args) == 1 &&
					k.of(method.X)&k.of(n.Args[0])&wallTime != 0 {
					found(n, "compares wall-clock times")
				}
			}
			return true
		})
	}

	return out
}

var orders = []string{"(time.Time).After", "(time.Time).Before", "(time.Time).Compare"}

func compares(op token.Token) bool {
	return slices.Contains([]token.Token{token.LSS, token.LEQ, token.GTR, token.GEQ, token.EQL, token.NEQ}, op)
}

// absent reports whether an expression is nil, to which collections and
// functions are compared.
func (k *clock) absent(e ast.Expr) bool { return k.info.Types[e].IsNil() }

// follow carries the values of expressions to the variables, fields,
// parameters and results that they are assigned to.
func (k *clock) follow(f *ast.File) {
	var functions []ast.Node // around the node, the innermost last
	var path []ast.Node
	ast.Inspect(f, func(n ast.Node) bool {
		if n == nil {
			switch path[len(path)-1].(type) {
			case *ast.FuncDecl, *ast.FuncLit:
				functions = functions[:len(functions)-1]
			}
			path = path[:len(path)-1]
			return true
		}

		path = append(path, n)
		switch n := n.(type) {
		case *ast.FuncDecl, *ast.FuncLit:
			functions = append(functions, n)
		case *ast.AssignStmt:
			for i, to := range n.Lhs {
				k.assign(to, k.nth(n.Rhs, i, len(n.Lhs)))
			}
		case *ast.ValueSpec:
			for i, to := range n.Names {
				k.assign(to, k.nth(n.Values, i, len(n.Names)))
			}
		case *ast.RangeStmt:
			if _, ok := under[*types.Map](k.info.TypeOf(n.X)); ok && n.Key != nil {
				k.assign(n.Key, k.of(n.X))
			}
			if n.Value != nil {
				k.assign(n.Value, k.of(n.X))
			}
		case *ast.SendStmt:
			k.assign(n.Chan, k.of(n.Value))
		case *ast.CompositeLit:
			k.fields(n)
		case *ast.CallExpr:
			k.arguments(n)
		case *ast.ReturnStmt:
			if len(functions) > 0 {
				k.returns(functions[len(functions)-1], n)
			}
		}
		return true
	})
}

// nth returns the value that assignment i of n takes from these expressions.
func (k *clock) nth(from []ast.Expr, i, n int) wall {
	switch {
	case len(from) == n:
		return k.of(from[i])
	case len(from) == 1:
		if call, ok := ast.Unparen(from[0]).(*ast.CallExpr); ok {
			return k.result(call, i)
		}
		if i == 0 { // v, ok :=
			return k.of(from[0])
		}
	}
	return 0
}

func (k *clock) assign(to ast.Expr, w wall) {
	if id := root(to); id != nil {
		if s, ok := ast.Unparen(to).(*ast.SelectorExpr); ok {
			id = s.Sel
		}
		if ix, ok := ast.Unparen(to).(*ast.IndexExpr); ok {
			if s, ok := ast.Unparen(ix.X).(*ast.SelectorExpr); ok {
				id = s.Sel
			}
		}
		k.mark(cmp.Or(k.info.Defs[id], k.info.Uses[id]), w)
	}
}

// mark records what a variable of this package holds. Times are not followed into the fields of
// other types, because they are data there.
func (k *clock) mark(v types.Object, w wall) {
	if v == nil || v.Pkg() != k.typ || v.Name() == "_" || !holds(v.Type()) || k.vars[v]|w == k.vars[v] ||
		!k.tests(v.Pos()) {
		return
	}
	k.vars[v] |= w
	k.changed = true
}

// tests reports whether a position is in one of the files that are checked.
func (k *clock) tests(pos token.Pos) bool {
	return slices.ContainsFunc(k.pkg.files, func(f file) bool {
		return f.ast.FileStart <= pos && pos < f.ast.FileEnd
	})
}

// holds reports whether values of a type can be times, durations or
// numbers, or collections or functions of them.
func holds(t types.Type) bool {
	switch u := t.Underlying().(type) {
	case *types.Basic:
		return u.Info()&types.IsNumeric != 0
	case *types.Slice:
		return holds(u.Elem())
	case *types.Array:
		return holds(u.Elem())
	case *types.Map:
		return holds(u.Elem()) || holds(u.Key())
	case *types.Chan:
		return holds(u.Elem())
	case *types.Pointer:
		return holds(u.Elem())
	case *types.Signature:
		return true
	case *types.Struct:
		return t.String() == "time.Time" || strings.HasPrefix(t.String(), "sync/atomic.Int")
	default:
		return types.IsInterface(t) && t.String() != "error" // of generic functions
	}
}

func (k *clock) fields(lit *ast.CompositeLit) {
	s, ok := under[*types.Struct](k.info.TypeOf(lit))
	if !ok {
		return
	}
	for i, e := range lit.Elts {
		if kv, ok := e.(*ast.KeyValueExpr); ok {
			if id, ok := kv.Key.(*ast.Ident); ok {
				k.mark(k.info.Uses[id], k.of(kv.Value))
			}
		} else if i < s.NumFields() {
			k.mark(s.Field(i), k.of(e))
		}
	}
}

// arguments carries the arguments of a call to the parameters of a
// function of this package.
func (k *clock) arguments(call *ast.CallExpr) {
	sig, ok := under[*types.Signature](k.info.TypeOf(call.Fun))
	if !ok {
		return
	}
	if f, ok := k.callee(call).(*types.Func); ok {
		sig = f.Signature() // of the generic function, not of its instance
	}
	for i, arg := range call.Args {
		if j := min(i, sig.Params().Len()-1); j >= 0 {
			k.mark(sig.Params().At(j), k.of(arg))
		}
	}

	if s, ok := call.Fun.(*ast.SelectorExpr); ok && len(call.Args) == 1 {
		switch s.Sel.Name { // of a sync/atomic value
		case "Store", "Add", "CompareAndSwap":
			k.assign(s.X, k.of(call.Args[0]))
		}
	}
}

func (k *clock) returns(function ast.Node, r *ast.ReturnStmt) {
	var key any = function
	var typ *ast.FuncType
	switch f := function.(type) {
	case *ast.FuncDecl:
		key, typ = k.info.Defs[f.Name], f.Type
	case *ast.FuncLit:
		typ = f.Type
	}
	if typ.Results == nil {
		return
	}
	n, i := typ.Results.NumFields(), 0
	for i := range n {
		k.markResult(key, i, n, k.nth(r.Results, i, n))
	}
	for _, field := range typ.Results.List {
		for _, id := range field.Names {
			k.markResult(key, i, n, k.vars[k.info.Defs[id]])
			i++
		}
	}
}

func (k *clock) markResult(function any, i, n int, w wall) {
	all := k.results[function]
	if all == nil {
		all = make([]wall, n)
		k.results[function] = all
	}
	if all[i]|w != all[i] {
		all[i] |= w
		k.changed = true
	}
}

// callee returns the function, or the variable, that a call names.
func (k *clock) callee(call *ast.CallExpr) types.Object {
	fun := ast.Unparen(call.Fun)
	switch ix := fun.(type) {
	case *ast.IndexExpr:
		fun = ix.X
	case *ast.IndexListExpr:
		fun = ix.X
	}
	switch fun := fun.(type) {
	case *ast.Ident:
		return origin(k.info.Uses[fun])
	case *ast.SelectorExpr:
		return origin(k.info.Uses[fun.Sel])
	}
	return nil
}

func origin(o types.Object) types.Object {
	switch o := o.(type) {
	case *types.Func:
		return o.Origin()
	case *types.Var:
		return o.Origin()
	}
	return o
}

func name(o types.Object) string {
	if f, ok := o.(*types.Func); ok {
		return f.FullName()
	}
	return ""
}

// of says how the value of an expression depends on the wall clock. For
// a function it is the first result.
func (k *clock) of(e ast.Expr) wall {
	switch e := e.(type) {
	case *ast.Ident:
		return k.object(e)
	case *ast.SelectorExpr:
		return k.object(e.Sel)
	case *ast.ParenExpr:
		return k.of(e.X)
	case *ast.UnaryExpr:
		return k.of(e.X)
	case *ast.StarExpr:
		return k.of(e.X)
	case *ast.IndexExpr:
		return k.of(e.X)
	case *ast.SliceExpr:
		return k.of(e.X)
	case *ast.KeyValueExpr:
		return k.of(e.Value)
	case *ast.FuncLit:
		return first(k.results[e])
	case *ast.CallExpr:
		return k.result(e, 0)
	case *ast.BinaryExpr:
		if !compares(e.Op) {
			return k.of(e.X) | k.of(e.Y)
		}
	case *ast.CompositeLit:
		if _, ok := under[*types.Struct](k.info.TypeOf(e)); !ok {
			return k.any(e.Elts)
		}
	}
	return 0
}

func (k *clock) object(id *ast.Ident) wall {
	o := origin(k.info.Uses[id])
	if name(o) == "time.Now" && !k.bubble.has(id.Pos()) {
		return wallTime
	}
	return k.vars[o] | first(k.results[o])
}

func (k *clock) any(all []ast.Expr) (w wall) {
	for _, e := range all {
		w |= k.of(e)
	}
	return w
}

func first(all []wall) wall {
	if len(all) == 0 {
		return 0
	}
	return all[0]
}

// result is result i of a call.
func (k *clock) result(call *ast.CallExpr, i int) wall {
	if k.info.Types[call.Fun].IsType() {
		return k.any(call.Args)
	}
	o := k.callee(call)
	if all := k.results[o]; i < len(all) && all[i] != 0 {
		return all[i]
	}

	switch o := o.(type) {
	case *types.Builtin:
		if slices.Contains([]string{"min", "max", "append"}, o.Name()) {
			return k.any(call.Args)
		}
	case *types.Var: // a function value
		return k.vars[o]
	case *types.Func:
		return k.library(call, o)
	}
	if lit, ok := call.Fun.(*ast.FuncLit); ok && i < len(k.results[lit]) {
		return k.results[lit][i]
	}
	return 0
}

// library returns the first result of a function or method that this package
// does not declare.
func (k *clock) library(call *ast.CallExpr, f *types.Func) wall {
	if f.Pkg() == nil || k.bubble.has(call.Pos()) {
		return 0
	}
	receiver := wall(0)
	if s, ok := call.Fun.(*ast.SelectorExpr); ok && f.Signature().Recv() != nil {
		receiver = k.of(s.X)
	}
	switch full := f.FullName(); full {
	case "time.Since", "time.Until":
		return wallDuration
	case "time.Now":
		return wallTime
	case "(time.Time).Sub":
		if receiver&k.any(call.Args)&wallTime != 0 {
			return wallDuration
		}
		return 0
	case "(time.Time).Add", "(time.Time).AddDate", "(time.Time).Round", "(time.Time).Truncate", "(time.Time).UTC",
		"(time.Time).Local", "(time.Time).In":
		return receiver & wallTime
	default:
		if strings.HasPrefix(full, "(time.Duration).") || strings.HasPrefix(full, "(*sync/atomic.Int") {
			return receiver & wallDuration
		}
	}

	if slices.Contains([]string{"slices", "maps", "math", "cmp", "sort"}, f.Pkg().Path()) {
		return k.any(call.Args)
	}
	return 0
}

func under[T types.Type](t types.Type) (T, bool) {
	if t == nil {
		var zero T
		return zero, false
	}
	u, ok := t.Underlying().(T)
	return u, ok
}

func TestNoWallClock(t *testing.T) { report(t, checkWallClock(ownClock(), must(t, typedTests))) }

func TestWallClockCheckFails(t *testing.T) {
	const durations = "compares wall-clock durations"
	for name, code := range map[string]string{
		"directly":            `if time.Since(start) > limit { t.Fatal() }`,
		"until":               `if time.Until(start) != 0 { t.Fatal() }`,
		"the other way round": `if limit < time.Now().Sub(start) { t.Fatal() }`,
		"through a variable":  `took := time.Since(start); if took >= limit { t.Fatal() }`,
		"in the condition":    `if took := time.Since(start); took > limit { t.Fatal() }`,
		"through var":         `var took = time.Since(start); if took == 0 { t.Fatal() }`,
		"between two times":   `end := time.Now(); if end.Sub(start) > limit { t.Fatal() }`,
		"rounded":             `if time.Since(start).Round(time.Second) != 0 { t.Fatal() }`,
		"in float seconds":    `if time.Since(start).Seconds() > 3 { t.Fatal() }`,
		"converted":           `took := float64(time.Since(start)) / 1e9; if took > 3 { t.Fatal() }`,
		"divided":             `each := time.Since(start) / 100; if each > limit { t.Fatal() }`,
		"added up":            `var sum time.Duration; sum += time.Since(start); if sum > limit { t.Fatal() }`,
		"sorted": `var all []time.Duration; all = append(all, time.Since(start))
			slices.Sort(all); if all[len(all)/2] > limit { t.Fatal() }`,
		"by index":       `all := make([]time.Duration, 3); all[1] = time.Since(start); if all[0] > limit { t.Fatal() }`,
		"the largest":    `all := []time.Duration{time.Since(start)}; if slices.Max(all) > limit { t.Fatal() }`,
		"in a map":       `all := map[string]time.Duration{"a": time.Since(start)}; if all["a"] > limit { t.Fatal() }`,
		"of a range":     `for _, d := range []time.Duration{time.Since(start)} { if d > limit { t.Fatal() } }`,
		"min":            `if min(time.Since(start), limit) == limit { t.Fatal() }`,
		"max":            `if max(limit, time.Since(start)) != limit { t.Fatal() }`,
		"cmp":            `if cmp.Compare(time.Since(start), limit) > 0 { t.Fatal() }`,
		"ratio":          `a, b := time.Since(start), time.Since(start); if float64(a)/float64(b) > 2 { t.Fatal() }`,
		"switch true":    `switch took := time.Since(start); true { case took > limit: t.Fatal() }`,
		"switch":         `switch time.Since(start) { case limit: t.Fatal() }`,
		"a field":        `var v struct{ took time.Duration }; v.took = time.Since(start); if v.took > limit { t.Fatal() }`,
		"a literal":      `type run struct{ took time.Duration }; if (run{took: time.Since(start)}).took > limit { t.Fatal() }`,
		"a function":     `took := func() time.Duration { return time.Since(start) }; if took() > limit { t.Fatal() }`,
		"a second one":   `if _, took := measured(); took > limit { t.Fatal() }`,
		"a parameter":    `within := func(d time.Duration) bool { return d < limit }; within(time.Since(start))`,
		"a channel":      `c := make(chan time.Duration, 1); c <- time.Since(start); if <-c > limit { t.Fatal() }`,
		"an atomic":      `var n atomic.Int64; n.Store(int64(time.Since(start))); if n.Load() > 5 { t.Fatal() }`,
		"in a goroutine": `go func() { if time.Since(start) > limit { t.Error() } }()`,
	} {
		t.Run(name, func(t *testing.T) {
			catches(t, checkWallClock(nil, []checked{clockSample(t, code)}), durations)
		})
	}

	late := `end := start.Add(limit); for { if time.Now().After(end) { t.Fatal() } }`
	catches(t, checkWallClock(nil, []checked{clockSample(t, late)}), "compares wall-clock times")
	catches(t, checkWallClock(map[string]string{"x": "because"}, nil), "excuses x")
	report(t, checkWallClock(map[string]string{"value": "because"}, []checked{clockSample(t, late)}))
	mixed := `check := func() { if time.Since(start) > limit { t.Fatal() } }
		check(); synctest.Test(t, func(t *testing.T) { check() })`
	catches(t, checkWallClock(nil, []checked{clockSample(t, mixed)}), durations)
}

func TestWallClockCheckAllows(t *testing.T) {
	for name, code := range map[string]string{
		"data":          `if r.Deadline.Sub(r.Created) != limit { t.Fatal() }`,
		"data from now": `r = request{start, start.Add(limit)}; if r.Deadline.Sub(epoch) != limit { t.Fatal() }`,
		"a log":         `took := time.Since(start); t.Log(took)`,
		"nil":           `f := func() time.Duration { return time.Since(start) }; if f == nil { t.Fatal() }`,
		"an order":      `if r.Deadline.Before(r.Created) { t.Fatal() }`,
		"work":          `n := 0; _ = time.Since(start); n++; if n > 1 { t.Fatal() }`,
		"a bubble":      `synctest.Test(t, func(t *testing.T) { s := time.Now(); if time.Since(s) > limit { t.Fatal() } })`,
		"a helper": `check := func() { s := time.Now(); if time.Since(s) > limit { t.Fatal() } }
			synctest.Test(t, func(t *testing.T) { check() })`,
		"a function of bubbles": `synctest.Test(t, inBubble)`,
		"what a helper of bubbles gets": `scripted(t, func(t *testing.T) {
			s := time.Now(); if time.Since(s) > limit { t.Fatal() } })`,
		"a method": `synctest.Test(t, func(t *testing.T) { var s io.Reader = &script{}; s.Read(nil) })`,
	} {
		t.Run(name, func(t *testing.T) {
			report(t, checkWallClock(nil, []checked{clockSample(t, code)}))
		})
	}
}

// clockSample returns a package whose only test has this code.
func clockSample(t *testing.T, code string) checked {
	t.Helper()
	p := sampleTest(t, "value", `package value
import ("cmp"; "context"; "io"; "net"; "net/http"; "slices"; "sync/atomic"; "testing"; "testing/synctest"; "time")
type request struct{ Created, Deadline time.Time }
func use(...any) {}
var _ = []any{net.Dial, http.Get, cmp.Compare[int], context.Background, slices.Max[[]int], new(atomic.Int64), synctest.Wait, io.EOF}
func measured() (int, time.Duration) { s := time.Now(); return 1, time.Since(s) }
func TestIt(t *testing.T) {
	start, limit, epoch, r := time.Now(), time.Second, time.Time{}, request{}
	use(start, limit, epoch, r)
	`+code+"\n}\n"+declared(code))
	p.files = p.tests
	c, err := check(p, must(t, sampleImports))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// declared returns the declarations that a sample uses.
func declared(code string) string {
	var out []string
	for name, text := range map[string]string{
		"inBubble": `func inBubble(t *testing.T) { s := time.Now(); if time.Since(s) > 3 { t.Fatal() } }`,
		"scripted": `func scripted(t *testing.T, test func(t *testing.T)) {
			synctest.Test(t, func(t *testing.T) { test(t) })
		}`,
		"script{}": `type script struct { began time.Time; at time.Duration }
		func (s *script) Read([]byte) (int, error) {
			if s.at = time.Since(s.began); s.at > 5 { panic("late") }
			return 0, nil
		}`,
	} {
		if strings.Contains(code, name) {
			out = append(out, text)
		}
	}
	return strings.Join(out, "\n")
}

// sampleImports imports what samples import.
var sampleImports = sync.OnceValues(func() (types.Importer, error) {
	return compiled(
		".",
		"cmp", "context", "io", "net", "net/http", "slices", "sync/atomic", "testing", "testing/synctest", "time",
	)
})
