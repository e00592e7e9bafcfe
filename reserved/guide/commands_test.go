package guide_test

import (
	"go/ast"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// Every command and flag a page names exists, and no command is left out.
func TestCommandsExist(t *testing.T) {
	names, flags := commandLine(t)
	hostEntry := regexp.MustCompile(`"command": "broker", "args": \["([^"]*)"`)
	mentioned := map[string]bool{}
	for _, s := range lines(t) {
		for _, m := range hostEntry.FindAllStringSubmatch(s.text, -1) {
			if _, ok := names[m[1]]; !ok {
				t.Errorf("%s: %s: no such command", s.page, s.text)
			}
		}
		words := strings.Fields(s.text)
		isCommand := arg(words, 0) == "broker" && (s.lang == "span" || s.lang == "sh")
		if isCommand {
			checkCommand(t, names, s, words)
			mentioned[arg(words, 1)] = true
		}
		if !isCommand && (s.lang != "span" || !strings.HasPrefix(s.text, "--")) {
			continue
		}
		for _, w := range words {
			if strings.HasPrefix(w, "-") && !flags[strings.TrimLeft(w, "-")] {
				t.Errorf("%s: %q: no flag %s", s.page, s.text, w)
			}
		}
	}
	for _, command := range []string{"status", "get", "describe", "logs", "restart", "diagnose", "guide", "call", "tools", "watch", "doctor", "run", "check", "bridge", "scenario"} {
		if !mentioned[command] {
			t.Errorf("no page mentions 'broker %s'", command)
		}
	}
}

func checkCommand(t *testing.T, names map[string][]string, s snippet, words []string) {
	t.Helper()
	subcommands, ok := names[arg(words, 1)]
	if !ok && !strings.HasPrefix(arg(words, 1), "-") {
		t.Errorf("%s: %q: no such command", s.page, s.text)
	}
	if len(subcommands) > 0 && !slices.Contains(subcommands, arg(words, 2)) {
		t.Errorf("%s: %q: known are %q", s.page, s.text, subcommands)
	}
}

func arg(words []string, i int) string {
	if i < len(words) {
		return words[i]
	}
	return ""
}

// commandLine reads the commands with their subcommands, and all flags, out of
// the program's source.
func commandLine(t *testing.T) (names map[string][]string, flags map[string]bool) {
	t.Helper()
	names, flags = map[string][]string{}, map[string]bool{"help": true}
	inspect(t, "../../cmd/broker", func(n ast.Node) bool {
		lit, ok := n.(*ast.CompositeLit)
		if !ok {
			return true
		}
		switch typ := typeName(lit.Type); {
		case typ == "Command":
			name := text(member(lit, "Name"))
			names[name] = append(names[name], within(member(lit, "Subcommands"))...)
		case strings.HasSuffix(typ, "Flag"):
			flags[text(member(lit, "Name"))] = true
			if aliases, ok := member(lit, "Aliases").(*ast.CompositeLit); ok {
				for _, a := range aliases.Elts {
					flags[text(a)] = true
				}
			}
		}
		return true
	})
	return names, flags
}

// within finds the names of the commands made in an expression: in a literal, or
// by a function whose first argument is the name.
func within(e ast.Expr) (names []string) {
	if e == nil {
		return nil
	}
	ast.Inspect(e, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.KeyValueExpr:
			if key, ok := n.Key.(*ast.Ident); ok && key.Name == "Name" {
				names = append(names, text(n.Value))
			}
			return true
		case *ast.CallExpr:
			if f, ok := n.Fun.(*ast.SelectorExpr); ok && strings.HasSuffix(f.Sel.Name, "Command") && len(n.Args) > 0 && text(n.Args[0]) != "" {
				names = append(names, text(n.Args[0]))
			}
		case *ast.CompositeLit:
			return !strings.HasSuffix(typeName(n.Type), "Flag")
		}
		return true
	})
	return names
}

func typeName(e ast.Expr) string {
	if s, ok := e.(*ast.SelectorExpr); ok {
		return s.Sel.Name
	}
	return ""
}

func member(lit *ast.CompositeLit, name string) ast.Expr {
	for _, e := range lit.Elts {
		if kv, ok := e.(*ast.KeyValueExpr); ok {
			if key, ok := kv.Key.(*ast.Ident); ok && key.Name == name {
				return kv.Value
			}
		}
	}
	return nil
}

func text(e ast.Expr) string {
	lit, ok := e.(*ast.BasicLit)
	if !ok {
		return ""
	}
	s, err := strconv.Unquote(lit.Value)
	if err != nil {
		return ""
	}
	return s
}
