package repotest

import (
	"go/ast"
	"go/constant"
	"slices"
	"testing"
	"time"
)

// shortest is the minimum of fixed time limits in tests for a process or a server. A shorter limit
// depends on the speed of the machine.
const shortest = time.Minute

// checkDeadlines reports fixed short deadlines outside bubbles: a
// constant for context.WithTimeout, for the Timeout of an http.Client, or
// after time.Now in context.WithDeadline or a deadline of a connection,
// and a select that fails the test after a constant time. Waiting belongs
// to internal/testwait.
func checkDeadlines(packages []checked) []string {
	var out []string
	for _, c := range packages {
		b := newBubble(c)
		found := func(n ast.Node) {
			if !b.has(n.Pos()) {
				out = append(out, at(c.fset, n)+": a fixed short deadline: wait with internal/testwait, "+
					"which lasts as long as the test, or cancel when something happened")
			}
		}
		for _, f := range c.pkg.files {
			ast.Inspect(f.ast, func(n ast.Node) bool {
				switch n := n.(type) {
				case *ast.CallExpr:
					if short(c, n, "context.WithTimeout", 1) || sets(c, n) {
						found(n)
					}
				case *ast.CompositeLit:
					if t := c.info.TypeOf(n); t != nil && t.String() == "net/http.Client" && timesOut(c, n) {
						found(n)
					}
				case *ast.CommClause:
					if call := received(n.Comm); call != nil && short(c, call, "time.After", 0) && fails(n.Body) {
						found(call)
					}
				}
				return true
			})
		}
	}

	return out
}

// short reports whether a call of this function has a constant duration
// as argument i that is positive and less than a minute.
func short(c checked, call *ast.CallExpr, function string, i int) bool {
	fun, ok := call.Fun.(*ast.SelectorExpr)
	if !ok || name(c.info.Uses[fun.Sel]) != function || i >= len(call.Args) {
		return false
	}
	return brief(c, call.Args[i])
}

// brief reports whether an expression is such a constant.
func brief(c checked, e ast.Expr) bool {
	value := c.info.Types[e].Value
	if value == nil {
		return false
	}
	d, exact := constant.Int64Val(constant.ToInt(value))
	return exact && d > 0 && time.Duration(d) < shortest
}

// sets reports whether a call sets a deadline that is a short constant
// after now.
func sets(c checked, call *ast.CallExpr) bool {
	fun, ok := call.Fun.(*ast.SelectorExpr)
	if !ok || len(call.Args) == 0 {
		return false
	}
	switch fun.Sel.Name {
	case "WithDeadline", "SetDeadline", "SetReadDeadline", "SetWriteDeadline":
	default:
		return false
	}
	add, ok := call.Args[len(call.Args)-1].(*ast.CallExpr)
	if !ok || !short(c, add, "(time.Time).Add", 0) {
		return false
	}
	now, ok := add.Fun.(*ast.SelectorExpr).X.(*ast.CallExpr)
	if !ok {
		return false
	}
	from, ok := now.Fun.(*ast.SelectorExpr)
	return ok && name(c.info.Uses[from.Sel]) == "time.Now"
}

// timesOut reports whether a literal sets its Timeout to a short constant.
func timesOut(c checked, client *ast.CompositeLit) bool {
	return slices.ContainsFunc(client.Elts, func(e ast.Expr) bool {
		kv, ok := e.(*ast.KeyValueExpr)
		if !ok {
			return false
		}
		id, ok := kv.Key.(*ast.Ident)
		return ok && id.Name == "Timeout" && brief(c, kv.Value)
	})
}

// received returns the call whose channel a case of a select receives from.
func received(comm ast.Stmt) *ast.CallExpr {
	var e ast.Expr
	switch s := comm.(type) {
	case *ast.ExprStmt:
		e = s.X
	case *ast.AssignStmt:
		e = s.Rhs[0]
	}
	if u, ok := e.(*ast.UnaryExpr); ok {
		call, _ := u.X.(*ast.CallExpr)
		return call
	}
	return nil
}

// fails reports whether statements fail the test.
func fails(body []ast.Stmt) bool {
	failing := []string{"Error", "Errorf", "Fatal", "Fatalf", "Fail", "FailNow"}
	found := false
	for _, s := range body {
		ast.Inspect(s, func(n ast.Node) bool {
			if call, ok := n.(*ast.CallExpr); ok {
				switch fun := call.Fun.(type) {
				case *ast.SelectorExpr:
					found = found || slices.Contains(failing, fun.Sel.Name)
				case *ast.Ident:
					found = found || fun.Name == "panic"
				}
			}
			return true
		})
	}
	return found
}

func TestNoShortDeadlines(t *testing.T) { report(t, checkDeadlines(must(t, typedTests))) }

func TestDeadlineCheck(t *testing.T) {
	for _, code := range []string{
		`context.WithTimeout(t.Context(), 5*time.Second)`,
		`context.WithDeadline(t.Context(), time.Now().Add(5*time.Second))`,
		`var c net.Conn; c.SetReadDeadline(time.Now().Add(time.Second))`,
		`use(&http.Client{Timeout: time.Second})`,
		`select { case <-time.After(time.Second): t.Fatal("late") }`,
		`select { case now := <-time.After(100 * time.Millisecond): t.Errorf("late: %v", now) }`,
		`select { case <-time.After(59 * time.Second): panic("late") }`,
	} {
		catches(t, checkDeadlines([]checked{clockSample(t, code)}), "a fixed short deadline")
	}

	for _, code := range []string{
		`context.WithTimeout(t.Context(), 10*time.Minute)`,
		`context.WithTimeout(t.Context(), limit)`, // a variable
		`context.WithTimeout(t.Context(), 0)`,
		`context.WithDeadline(t.Context(), time.Now().Add(-time.Second))`,
		`var c net.Conn; c.SetReadDeadline(start)`,
		`use(http.Client{Timeout: time.Hour})`,
		`select { case <-time.After(time.Second): }`,
		`synctest.Test(t, func(t *testing.T) { context.WithTimeout(t.Context(), time.Second) })`,
	} {
		report(t, checkDeadlines([]checked{clockSample(t, code)}))
	}
}
