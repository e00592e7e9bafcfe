package main

import (
	"strings"
	"testing"

	"github.com/urfave/cli/v2"
)

// docs/cli.md names every command that asks a broker, its flags, and the exit codes.
func TestCommandLineDocument(t *testing.T) {
	text := readFile(t, "../../docs/cli.md")
	p := &program{}
	var check func(prefix string, commands []*cli.Command)
	check = func(prefix string, commands []*cli.Command) {
		for _, c := range commands {
			name := prefix + " " + c.Name
			if len(c.Subcommands) > 0 {
				check(name, c.Subcommands)
				continue
			}
			if !strings.Contains(text, "`"+name+"`") && !strings.Contains(text, "`"+name+" ") {
				t.Errorf("%s is missing", name)
			}
		}
	}
	check("broker", []*cli.Command{
		p.doctorCommand(), p.statusCommand(), p.getCommand(), p.describeCommand(), p.logsCommand(), p.restartCommand(), p.diagnoseCommand(),
		p.guideCommand(),
		p.toolsCommand(), p.callCommand(), p.watchCommand(),
	})
	for _, part := range []string{"| 0 |", "| 1 |", "| 2 |", "| 3 |", "| 4 |", "| 130 |", "`--url URL`", "`--timeout`", "`-o json`", "--args", "`" + envURL + "`"} {
		if !strings.Contains(text, part) {
			t.Errorf("%s is missing", part)
		}
	}
}
