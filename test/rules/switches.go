package rules

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"sort"
	"strings"
)

// rule is one statement that can be switched off.
type rule struct {
	// number is what its switch is called.
	number int
	// place is its file and line, text the statement.
	place, text string
}

// insertion is text that is put into a file before the byte at an offset.
type insertion struct {
	offset int
	text   string
}

// withSwitches returns a file with a switch before each rule, and the rules, numbered on
// from first. A switch asks off(n), which another file of the package defines.
func withSwitches(name string, source []byte, first int) ([]byte, []rule, error) {
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, name, source, parser.SkipObjectResolution)
	if err != nil {
		return nil, nil, err
	}
	var rules []rule
	var insertions []insertion
	offset := func(pos token.Pos) int { return files.Position(pos).Offset }
	text := func(node ast.Node) string { return string(source[offset(node.Pos()):offset(node.End())]) }
	// add makes a rule of a node by what is put before and after a part of it.
	add := func(node, part ast.Node, before, after string) {
		number := first + len(rules)
		rules = append(rules, rule{number, fmt.Sprintf("%s:%d", name, files.Position(node.Pos()).Line), text(node)})
		insertions = append(insertions, insertion{offset(part.Pos()), fmt.Sprintf(before, number)}, insertion{offset(part.End()), fmt.Sprintf(after, number)})
	}
	conditional := map[ast.Stmt]bool{}
	for _, decl := range file.Decls {
		fn, ok := decl.(*ast.FuncDecl)
		if !ok || fn.Body == nil || !returnsErrors(fn) {
			continue
		}
		ast.Inspect(fn.Body, func(node ast.Node) bool {
			if lit, ok := node.(*ast.FuncLit); ok && !returnsErrors(&ast.FuncDecl{Type: lit.Type}) {
				return false
			}
			switch stmt := node.(type) {
			case *ast.IfStmt:
				if init, ok := stmt.Init.(*ast.AssignStmt); ok && text(init.Lhs[0]) == "errs" {
					conditional[init] = true
					add(init, stmt.Cond, "!off(%d) && (", ") /* %d */")
				}
			case *ast.AssignStmt:
				switch value := stmt.Rhs[0]; {
				case conditional[stmt] || len(stmt.Rhs) != 1 || len(stmt.Lhs) != 1 || text(stmt.Lhs[0]) != "errs":
				case stmt.Tok == token.DEFINE && isCall(value):
					add(stmt, stmt, "/* %d */", "; if off(%d) { errs = nil }")
				case stmt.Tok == token.ASSIGN && isAppend(value):
					add(stmt, stmt, "if !off(%d) { ", " } /* %d */")
				}
			case *ast.ReturnStmt:
				if len(stmt.Results) != 1 {
					break
				}
				switch value := stmt.Results[0]; {
				case isAppend(value):
					add(stmt, stmt, "if off(%d) { return "+text(value.(*ast.CallExpr).Args[0])+" }; ", "/* %d */")
				case isCall(value) || isList(value):
					add(stmt, stmt, "if off(%d) { return nil }; ", "/* %d */")
				}
			}
			return true
		})
	}
	return insert(source, insertions), rules, nil
}

// returnsErrors says that a function returns one field.ErrorList.
func returnsErrors(fn *ast.FuncDecl) bool {
	results := fn.Type.Results
	if results == nil || len(results.List) != 1 {
		return false
	}
	selector, ok := results.List[0].Type.(*ast.SelectorExpr)
	return ok && selector.Sel.Name == "ErrorList"
}

func isCall(expr ast.Expr) bool {
	_, ok := expr.(*ast.CallExpr)
	return ok && !isAppend(expr)
}

func isAppend(expr ast.Expr) bool {
	call, ok := expr.(*ast.CallExpr)
	if !ok {
		return false
	}
	name, ok := call.Fun.(*ast.Ident)
	return ok && name.Name == "append"
}

func isList(expr ast.Expr) bool {
	_, ok := expr.(*ast.CompositeLit)
	return ok
}

func insert(source []byte, insertions []insertion) []byte {
	sort.SliceStable(insertions, func(i, j int) bool { return insertions[i].offset < insertions[j].offset })
	var out bytes.Buffer
	at := 0
	for _, insertion := range insertions {
		out.Write(source[at:insertion.offset])
		out.WriteString(insertion.text)
		at = insertion.offset
	}
	out.Write(source[at:])
	return out.Bytes()
}

// switchFile defines off: the switch of the rule whose number is in a variable of the
// environment.
func switchFile(pkg, variable string) string {
	return strings.NewReplacer("PKG", pkg, "VARIABLE", variable).Replace(`package PKG

import (
	"os"
	"strconv"
)

var switchedOff, _ = strconv.Atoi(os.Getenv("VARIABLE"))

func off(rule int) bool { return rule == switchedOff }
`)
}
