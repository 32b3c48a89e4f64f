package repotest

import (
	"go/ast"
	"go/token"
	"go/types"
	"slices"
)

// bubble is the code of a package that runs only in bubbles of
// testing/synctest: functions given to synctest.Test, functions and
// methods that only such code uses, function literals that are passed
// to parameters which only such code uses, and methods that nothing
// calls by name of types that only such code uses.
type bubble struct {
	checked
	nodes []ast.Node
	uses  map[types.Object][]token.Pos
}

func newBubble(c checked) *bubble {
	b := &bubble{checked: c, uses: map[types.Object][]token.Pos{}}
	var bodies []*ast.FuncDecl
	for _, f := range c.pkg.files {
		for _, d := range f.ast.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && fn.Body != nil {
				bodies = append(bodies, fn)
			}
		}
	}

	for _, fn := range bodies {
		ast.Inspect(fn.Body, func(n ast.Node) bool {
			if id, ok := n.(*ast.Ident); ok && c.info.Uses[id] != nil {
				o := origin(c.info.Uses[id])
				b.uses[o] = append(b.uses[o], id.Pos())
			}
			return true
		})
	}

	for before := -1; before != len(b.nodes); {
		before = len(b.nodes)
		for _, fn := range bodies {
			if !b.has(fn.Pos()) && b.only(c.info.Defs[fn.Name], fn) {
				b.nodes = append(b.nodes, fn)
			}
			ast.Inspect(fn, b.literals)
		}
	}
	return b
}

// literals finds the function literals that a statement hands to a
// bubble.
func (b *bubble) literals(n ast.Node) bool {
	add := func(e ast.Expr, to types.Object) {
		if lit, ok := e.(*ast.FuncLit); ok && to != nil && !b.has(lit.Pos()) && b.only(to, lit) {
			b.nodes = append(b.nodes, lit)
		}
	}
	switch n := n.(type) {
	case *ast.AssignStmt:
		for i, to := range n.Lhs {
			if id, ok := to.(*ast.Ident); ok && len(n.Lhs) == len(n.Rhs) {
				add(n.Rhs[i], b.info.Defs[id])
			}
		}
	case *ast.CallExpr:
		fun, ok := n.Fun.(*ast.SelectorExpr)
		if ok && name(b.info.Uses[fun.Sel]) == "testing/synctest.Test" {
			if lit, ok := n.Args[1].(*ast.FuncLit); ok && !b.has(lit.Pos()) {
				b.nodes = append(b.nodes, lit)
			} else if id, ok := n.Args[1].(*ast.Ident); ok {
				b.uses[b.info.Uses[id]] = slices.DeleteFunc(b.uses[b.info.Uses[id]],
					func(p token.Pos) bool { return p == id.Pos() })
				b.uses[b.info.Uses[id]] = append(b.uses[b.info.Uses[id]], token.NoPos)
			}
			return true
		}
		if sig, ok := under[*types.Signature](b.info.TypeOf(n.Fun)); ok {
			for i, arg := range n.Args {
				if i < sig.Params().Len() {
					add(arg, sig.Params().At(i))
				}
			}
		}
	}
	return true
}

// only reports whether a function, or a variable that holds one, is used
// in bubbles alone, apart from itself.
func (b *bubble) only(o types.Object, body ast.Node) bool {
	uses := slices.DeleteFunc(slices.Clone(b.uses[o]), func(p token.Pos) bool {
		return body.Pos() <= p && p < body.End()
	})
	if f, ok := o.(*types.Func); ok && len(uses) == 0 && f.Signature().Recv() != nil {
		t := f.Signature().Recv().Type()
		if p, ok := t.(*types.Pointer); ok {
			t = p.Elem()
		}
		if n, ok := t.(*types.Named); ok {
			uses = b.uses[n.Origin().Obj()]
		}
	}
	return len(uses) > 0 && !slices.ContainsFunc(uses, func(p token.Pos) bool { return !b.has(p) })
}

// has reports whether code runs only in bubbles. token.NoPos stands for
// synctest itself.
func (b *bubble) has(pos token.Pos) bool {
	return pos == token.NoPos || slices.ContainsFunc(b.nodes, func(n ast.Node) bool {
		return n.Pos() <= pos && pos < n.End()
	})
}
